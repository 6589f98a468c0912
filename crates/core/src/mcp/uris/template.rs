//! Templates of URIs (RFC 6570), read backwards: the values with which a template gives a URI.
//!
//! **Invariant:** there are values only if exactly one way of filling the template gives the URI byte
//! by byte, but for the order of the pairs of its query. A URI that can be read in two ways matches no
//! template, for its server could take other values from it than a policy did.

use std::{collections::BTreeMap, mem};

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::{MAX_BYTES, ResourceUri, UriError, has_normal_encoding, is_legal, is_unreserved};

const MAX_EXPRESSIONS: usize = 16;
const MAX_VARIABLES: usize = 64;
/// Values that hold one of these lead elsewhere, some only when they are decoded once more.
const FORBIDDEN: [&str; 8] = ["..", "%2525", "%252e", "%252f", "%255c", "%2e", "%2f", "%5c"];

/// A template whose scheme is literal.
#[derive(Debug, Clone)]
pub struct Template {
    text: String,
    variables: Vec<String>,
    /// The first one is the beginning, which is empty. Later ones follow earlier ones.
    steps: Vec<Step>,
    /// Steps after which the next one may begin.
    ends: Vec<usize>,
    /// Variables of `{?…}` or `{&…}`, which is the last expression.
    form: Vec<Variable>,
    /// Character that begins the form, and how often it stands before.
    mark: (char, usize),
}

/// A literal, and a value behind it.
#[derive(Debug, Clone, Default)]
struct Step {
    after: Vec<usize>,
    literal: String,
    variable: Option<Variable>,
}

#[derive(Debug, Clone)]
struct Variable {
    name: String,
    /// Most characters.
    most: usize,
    /// A list, its items one after the other.
    is_list: bool,
    is_reserved: bool,
    /// Stands between values, and between the items of a list.
    separator: Option<char>,
}

impl Template {
    /// Accepts a template of any level of RFC 6570 whose values can be read back from a URI. Variables
    /// with `*` are lists; no URI of a map has values.
    pub fn parse(text: &str) -> Result<Self, UriError> {
        if text.len() > MAX_BYTES {
            return Err(UriError::Length);
        }
        let mut template = Self {
            text: text.to_owned(),
            variables: Vec::new(),
            steps: vec![Step::default()],
            ends: vec![0],
            form: Vec::new(),
            mark: ('?', 0),
        };
        let mut pieces = text.split('{');
        let mut filled =
            pieces.next().filter(|it| it.contains(':')).ok_or(UriError::Scheme)?.to_owned();
        template.push_literal(&filled)?;
        for piece in pieces {
            let (expression, literal) = piece.split_once('}').ok_or(UriError::Expression)?;
            template.push_expression(expression, &filled)?;
            template.push_literal(literal)?;
            filled.extend(["1", literal]);
        }
        if text.matches('{').count() > MAX_EXPRESSIONS || template.variables.len() > MAX_VARIABLES {
            return Err(UriError::Expressions);
        }
        ResourceUri::parse(&filled)?;
        Ok(template)
    }

    /// The template as it came.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names of the variables in the order of the text.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(String::as_str)
    }

    /// Begin of each URI that has values.
    #[must_use]
    pub fn literal_prefix(&self) -> &str {
        self.text.split('{').next().unwrap_or_default()
    }

    /// Steps that [`Self::values`] takes for this URI at most.
    #[must_use]
    pub fn cost(&self, uri: &ResourceUri) -> usize {
        self.steps.len() * (uri.as_str().len() + 1)
    }

    /// The values of the variables that are defined, if the template with them gives this very URI.
    /// The items of a list are told in one text, between them what stands there in the URI.
    #[must_use]
    pub fn values(&self, uri: &ResourceUri) -> Option<BTreeMap<String, String>> {
        let text = Some(uri.as_str()).filter(|text| text.starts_with(self.literal_prefix()))?;
        let mut marks = text.match_indices(self.mark.0);
        let form = marks.nth(self.mark.1).filter(|_| !self.form.is_empty());
        let (text, form) = text.split_at(form.map_or(text.len(), |(at, _)| at));
        let mut values = self.read(text)?;
        for pair in form.get(1..).into_iter().flat_map(|form| form.split('&')) {
            let (name, value) = pair.split_once('=')?;
            let variable = self.form.iter().find(|it| it.name == name)?;
            let is_simple = |byte: u8| byte == b'%' || is_unreserved(byte);
            let value = variable.item(value).filter(|_| value.bytes().all(is_simple))?;
            match values.get_mut(name) {
                None => drop(values.insert(name.to_owned(), value)),
                Some(items) if variable.is_list => items.extend([",", &value]),
                Some(_) => return None,
            }
        }
        Some(values)
    }

    /// The URI that the template gives with these values (RFC 6570 §3.2), if it is not too long for one. A variable without
    /// a value is left out; a list is told as [`Self::values`] tells it.
    #[must_use]
    pub fn fill(&self, values: &BTreeMap<String, String>) -> Option<String> {
        fill(&self.text, values)
    }

    /// The same with `value` for a variable, which may be still `open`: being written. `None` if no read could be of a URI
    /// that goes on in this way: readers may understand it otherwise than policies do.
    #[must_use]
    pub fn begin(
        &self,
        values: &BTreeMap<String, String>,
        variable: &str,
        value: &str,
        open: bool,
    ) -> Option<String> {
        let steps = self.steps.iter().filter_map(|step| step.variable.as_ref());
        let known = steps.chain(&self.form).find(|it| it.name == variable)?;
        if value.chars().count() > known.most {
            return None;
        }
        // Of these one fits a name and a number each.
        ["x", "1"].into_iter().find(|rest| {
            let mut filled: BTreeMap<String, String> =
                self.variables.iter().map(|name| (name.clone(), (*rest).to_owned())).collect();
            filled.extend(values.iter().map(|(name, value)| (name.clone(), value.clone())));
            let rest = if open { *rest } else { "" };
            filled.insert(variable.to_owned(), format!("{value}{rest}"));
            let whole = self.fill(&filled).and_then(|uri| ResourceUri::parse(&uri).ok());
            whole.is_some_and(|uri| {
                uri.is_normal() && uri.is_plain() && (!open || self.values(&uri).is_some())
            })
        })?;
        let mut written = values.clone();
        written.insert(variable.to_owned(), value.to_owned());
        self.fill(&written)
    }

    /// The values before the form, if there is exactly one way to read the text.
    fn read(&self, text: &str) -> Option<BTreeMap<String, String>> {
        let ways = self.ways(text);
        let (mut values, mut place, mut after) = (BTreeMap::new(), text.len(), &self.ends);
        if begun(text, place, &ways, &Step { after: after.clone(), ..Step::default() }) != 1 {
            return None;
        }
        loop {
            let row = after.iter().find(|row| at(&ways, **row, place) > 0)?;
            let step = self.steps.get(*row).filter(|_| *row > 0);
            let Some(step) = step else { return Some(values) };
            if let Some(variable) = &step.variable {
                let begin = (0..place).rev().find(|it| begun(text, *it, &ways, step) > 0)?;
                let value = variable.value(text.get(begin..place)?)?;
                values.insert(variable.name.clone(), value);
                place = begin;
            }
            place = place.checked_sub(step.literal.len())?;
            after = &step.after;
        }
    }

    /// In how many ways each step can end at each place of the text, up to 255: one look at each step
    /// and place, however many there are.
    fn ways(&self, text: &str) -> Vec<Vec<u8>> {
        let mut ways: Vec<Vec<u8>> = Vec::with_capacity(self.steps.len());
        for (row, step) in self.steps.iter().enumerate() {
            let mut running = 0_u8;
            let mut ended = Vec::with_capacity(text.len() + 1);
            for place in 0..=text.len() {
                let begun = if row + place == 0 { 1 } else { begun(text, place, &ways, step) };
                ended.push(if step.variable.is_some() { running } else { begun });
                let next = text.as_bytes().get(place).copied().unwrap_or_default();
                let goes_on = step.variable.as_ref().is_some_and(|it| it.takes(next));
                running = if goes_on { running.saturating_add(begun) } else { 0 };
            }
            ways.push(ended);
        }
        ways
    }

    fn push_literal(&mut self, text: &str) -> Result<(), UriError> {
        if text.is_empty() {
            return Ok(());
        }
        if !self.form.is_empty() {
            return Err(UriError::Expression);
        }
        let after = mem::take(&mut self.ends);
        self.push(Step { after, literal: text.to_owned(), variable: None });
        Ok(())
    }

    fn push(&mut self, step: Step) {
        self.ends.push(self.steps.len());
        self.steps.push(step);
    }

    /// The variables of an expression may be undefined from one on to the last; all of them may be if
    /// its operator puts a character in front. `before` is the template so far.
    fn push_expression(&mut self, text: &str, before: &str) -> Result<(), UriError> {
        let names = text.strip_prefix(['+', '#', '.', '/', ';', '?', '&']).unwrap_or(text);
        let operator = text.strip_suffix(names).unwrap_or_default();
        let (first, separator) = match operator {
            "" | "+" => ("", ","),
            "." | "/" | ";" => (operator, operator),
            _ => (operator, ","),
        };
        let mut variables = Vec::new();
        for name in names.split(',') {
            let mut variable = Variable::parse(name).ok_or(UriError::Expression)?;
            variable.is_reserved = matches!(operator, "+" | "#");
            variable.separator = separator.chars().next().filter(|_| names.contains([',', '*']));
            if self.variables.contains(&variable.name) {
                return Err(UriError::Expression);
            }
            self.variables.push(variable.name.clone());
            variables.push(variable);
        }
        if matches!(operator, "?" | "&") {
            let begins = operator == "?";
            if !self.form.is_empty() || before.contains('#') || before.contains('?') == begins {
                return Err(UriError::Expression);
            }
            self.mark = if begins { ('?', 0) } else { ('&', before.matches('&').count()) };
            self.form = variables;
            return Ok(());
        }
        if self.steps.last().is_some_and(|last| last.variable.is_some()) {
            return Err(UriError::Adjacent);
        }
        let mut after = self.ends.clone();
        if first.is_empty() {
            self.ends.clear();
        }
        let mut literal = first.to_owned();
        for variable in variables {
            if operator == ";" {
                literal.extend([&variable.name, "="]);
            }
            let after = mem::replace(&mut after, vec![self.steps.len()]);
            let literal = mem::replace(&mut literal, separator.to_owned());
            self.push(Step { after, literal, variable: Some(variable) });
        }
        Ok(())
    }
}

/// Fills the expressions of a template with values, without what [`Template::values`] reads them back with.
fn fill(template: &str, values: &BTreeMap<String, String>) -> Option<String> {
    let mut pieces = template.split('{');
    let mut filled = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (expression, literal) = piece.split_once('}').unwrap_or((piece, ""));
        fill_expression(expression, values, &mut filled)?;
        filled.push_str(literal);
    }
    Some(filled).filter(|filled| filled.len() <= MAX_BYTES)
}

/// Stops where the text becomes too long for a URI.
fn fill_expression(
    text: &str,
    values: &BTreeMap<String, String>,
    filled: &mut String,
) -> Option<()> {
    let names = text.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
    let operator = text.strip_suffix(names).unwrap_or_default();
    let between = match operator {
        "" | "+" | "#" => ",",
        "?" => "&",
        other => other,
    };
    let mut begin = if operator == "+" { "" } else { operator };
    for variable in names.split(',').filter_map(Variable::parse) {
        let Some(value) = values.get(&variable.name) else { continue };
        let joint = if matches!(between, "/" | ".") { between } else { "," };
        for item in value.split(|it: char| variable.is_list && joint.contains(it)) {
            filled.push_str(begin);
            if matches!(operator, "?" | "&" | ";") {
                filled.extend([&variable.name, "="]);
            }
            for letter in item.chars().take(variable.most) {
                if filled.len() > MAX_BYTES {
                    return None;
                }
                let is_kept = u8::try_from(letter).is_ok_and(|byte| {
                    is_unreserved(byte) || (matches!(operator, "+" | "#") && is_legal(byte))
                });
                if is_kept {
                    filled.push(letter);
                } else {
                    let mut units = [0; 4];
                    let letter = letter.encode_utf8(&mut units);
                    filled.extend(utf8_percent_encode(letter, NON_ALPHANUMERIC));
                }
            }
            begin = between;
            if filled.len() > MAX_BYTES {
                return None;
            }
        }
    }
    Some(())
}

impl Variable {
    fn parse(text: &str) -> Option<Self> {
        let (text, is_list) = text.strip_suffix('*').map_or((text, false), |name| (name, true));
        let (name, most) = match text.split_once(':') {
            Some((name, most)) => (name, most.parse().ok().filter(|it| (1..10_000).contains(it))?),
            None => (text, usize::MAX),
        };
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_name = name.split('.').all(|it| !it.is_empty() && it.bytes().all(is_letter));
        let variable =
            Self { name: name.to_owned(), most, is_list, is_reserved: false, separator: None };
        (is_name && !(is_list && most < usize::MAX)).then_some(variable)
    }

    fn takes(&self, byte: u8) -> bool {
        if self.separator == Some(char::from(byte)) {
            return self.is_list;
        }
        self.is_reserved || byte == b'%' || is_unreserved(byte)
    }

    fn value(&self, text: &str) -> Option<String> {
        let items = text.split(|letter| self.is_list && self.separator == Some(letter));
        let items = items.map(|item| self.item(item)).collect::<Option<Vec<_>>>()?;
        Some(items.join(&self.separator.map(String::from).unwrap_or_default()))
    }

    /// The value that expands to this text. Reserved expansion leaves what is encoded already as it is,
    /// so in its values reserved characters stay encoded.
    fn item(&self, text: &str) -> Option<String> {
        let mut pieces = text.split('%');
        let mut kept = pieces.next()?.to_owned();
        for piece in pieces {
            let byte = u8::from_str_radix(piece.get(..2)?, 16).ok()?;
            kept.extend([if self.is_reserved && is_legal(byte) { "%25" } else { "%" }, piece]);
        }
        let value = percent_decode_str(&kept).decode_utf8().ok()?.into_owned();
        let lower = value.to_ascii_lowercase();
        let is_plain = has_normal_encoding(text)
            && value.chars().count() <= self.most
            && !FORBIDDEN.iter().any(|it| lower.contains(it))
            // Behind these the path of the URI has ended, but for the server perhaps not the value.
            && !(self.is_reserved && text.contains(['?', '#']))
            && value.split('/').all(|segment| !segment.is_empty())
            && (self.is_reserved || !value.contains('/'))
            && !self.separator.is_some_and(|it| self.is_list && value.contains(it));
        is_plain.then_some(value)
    }
}

fn at(ways: &[Vec<u8>], row: usize, place: usize) -> u8 {
    ways.get(row).and_then(|row| row.get(place)).copied().unwrap_or(0)
}

/// In how many ways the literal of a step can end at this place of the text.
fn begun(text: &str, place: usize, ways: &[Vec<u8>], step: &Step) -> u8 {
    let head = text.get(..place).and_then(|head| head.strip_suffix(&*step.literal));
    let head = head.filter(|head| is_between(text, head.len()) && is_between(text, place));
    let Some(head) = head else { return 0 };
    step.after.iter().fold(0, |sum, row| sum.saturating_add(at(ways, *row, head.len())))
}

/// False inside of a percent-encoded byte.
fn is_between(text: &str, place: usize) -> bool {
    let last = text.as_bytes().get(place.saturating_sub(2)..place);
    last.is_some_and(|last| !last.contains(&b'%'))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    /// Template, URI, and the values or `-`. The first rows are examples of RFC 6570 §3.2.
    const MATCHES: &str = "
x:{var}                       x:value                         var=value
x:{hello}                     x:Hello%20World%21              hello=Hello_World!
x:{half}                      x:50%25                         half=50%
x:O{empty}X                   x:OX                            -
x:map?{x,y}                   x:map?1024,768                  x=1024 y=768
x:{x,hello,y}                 x:1024,Hello%20World%21,768     hello=Hello_World! x=1024 y=768
x:?{x,empty}                  x:?1024,                        -
x:{var:3}                     x:val                           var=val
x:{var:3}                     x:value                         -
x:{list}                      x:red,green,blue                -
x:{list*}                     x:red,green,blue                list=red,green,blue
x:{keys*}                     x:semi=%3B,dot=.,comma=%2C      -
x:{+hello}                    x:Hello%20World!                hello=Hello_World!
x:{+half}                     x:50%25                         half=50%25
x:/{+path}/here               x:/foo/bar/here                 path=foo/bar
x:{+path}/here                x:/foo/bar/here                 -
x:{+base}index                x:http://example.com/home/index -
x:{+x,hello,y}                x:1024,Hello%20World!,768       hello=Hello_World! x=1024 y=768
x:/{+path:5}/here             x:/foo/b/here                   path=foo/b
x:a{#x,hello,y}               x:a#1024,Hello%20World!,768     hello=Hello_World! x=1024 y=768
x:foo{#undef}                 x:foo                           .
x:X{.x,y}                     x:X.1024.768                    x=1024 y=768
x:www{.dom*}                  x:www.example.com               dom=example.com
x:a{/var,x}/here              x:a/value/1024/here             var=value x=1024
x:a{/list*}                   x:a/red/green/blue              list=red/green/blue
x:a{/list*,path:4}            x:a/red/green/blue/%2Ffoo       -
x:a{;x,y}                     x:a;x=1024;y=768                x=1024 y=768
x:a{;x,y,empty}               x:a;x=1024;y=768;empty          -
x:a{?x,y}                     x:a?x=1024&y=768                x=1024 y=768
x:a{?x,y}                     x:a?y=768&x=1024                x=1024 y=768
x:a{?x,y,empty}               x:a?x=1024&y=768&empty=         -
x:a{?list*}                   x:a?list=red&list=green         list=red,green
x:a{?keys*}                   x:a?semi=%3B&dot=.              -
x:a?fixed=yes{&x,y}           x:a?fixed=yes&y=768&x=1         x=1 y=768
x:a?fixed=yes{&x}             x:a?fixed=yes                   .
x:a?fixed=yes{&x}             x:a?x=1&fixed=yes               -
x:a{?x}                       x:a                             .
x:a{?x}                       x:a?                            -
x:a{?x}                       x:a?x=1&x=1                     -
x:a{?x}                       x:a?x=1&z=1                     -
x:a{?x}                       x:a?x=1?x=2                     -
x:a{?x*}                      x:a?x=1,2                       -
x:a{?x*}                      x:a?x=1%2C2                     -
x:a?q={q}&r={r}               x:a?q=1&r=%26                   q=1 r=&
r://{o}/{r}/files{/path*}{?at} r://a/b/files/c/d?at=v%2F1     -
r://{o}/{r}/files{/path*}{?at} r://a/b/files/c/d?at=v1        at=v1 o=a path=c/d r=b
r://{o}/{r}/files{/path*}{?at} r://a/b/files                  o=a r=b
file:///{+dir}/{name}         file:///a/b/c%3F.md             dir=a/b name=c?.md
file:///{+path}               file:///a%3F/b%20c              path=a%3F/b_c
file:///docs/{+path}          file:///docs//etc/passwd        -
file:///docs/{+path}          file:///docs/a%2Fb              -
file:///docs/{+path}          file:///docs/a..b               -
file:///docs/{+path}          file:///docs/a%252e%252Eb       -
file:///docs/{name}           file:///docs/a%2fb              -
file:///docs/{name}           file:///docs/a%252Fb            -
file:///docs/{name}           file:///docs/a/b                -
file:///docs/{+path}          file:///docs/?/b                -
file:///docs/{+path}          file:///docs/a#/b               -
file:///docs/{name}           file:///other/a                 -
file:///docs/{name}           file:///docs/%c3%a9             -
file:///docs/{name}           file:///docs/%C3%A9             name=é
file:///docs/{name}           file:///docs/%41                -
x://{id}/data                 x:///data                       -
x:{a}-{b}                     x:1-2                           a=1 b=2
x:{a}-{b}                     x:1-2-3                         -
x:{a}2{b}                     x:%C3%A22%20                    a=â b=_
x:{a}0                        x:%20                           -
x:a                           x:a                             .
";

    fn write(values: Option<BTreeMap<String, String>>) -> String {
        let Some(values) = values else { return "-".to_owned() };
        let pairs = values.iter().map(|it| format!("{}={}", it.0, it.1.replace(' ', "_")));
        let pairs = pairs.collect::<Vec<_>>().join(" ");
        if pairs.is_empty() { ".".to_owned() } else { pairs }
    }

    #[test]
    fn values_are_those_with_which_the_template_gives_the_uri() {
        for row in MATCHES.trim().lines() {
            let columns: Vec<&str> = row.split_whitespace().collect();
            let (template, uri) = (Template::parse(columns[0]), ResourceUri::parse(columns[1]));

            let values = write(template.expect(row).values(&uri.expect(row)));

            assert_eq!(values, columns[2..].join(" "), "{row}");
        }
    }

    #[test]
    fn templates_that_cannot_be_read_back_are_refused() {
        let expressions =
            |count: usize| (0..count).map(|n| format!("/{{v{n}}}")).collect::<Vec<_>>().concat();
        let variables =
            |count: usize| (0..count).map(|n| format!("v{n}")).collect::<Vec<_>>().join(",");
        for (text, expected) in [
            ("{x}", UriError::Scheme),
            ("x{y}:a", UriError::Scheme),
            ("x:{a}{b}", UriError::Adjacent),
            ("x:a{/b}{.c}", UriError::Adjacent),
            ("x:{a", UriError::Expression),
            ("x:{}", UriError::Expression),
            ("x:{a-b}", UriError::Expression),
            ("x:{=a}", UriError::Expression),
            ("x:{a:0}", UriError::Expression),
            ("x:{a:3*}", UriError::Expression),
            ("x:{/a:1,a}", UriError::Expression),
            ("x:{?a}/b", UriError::Expression),
            ("x:a{&b}", UriError::Expression),
            ("x:a?b{?c}", UriError::Expression),
            ("x:a#b{?c}", UriError::Expression),
            ("x:a}", UriError::Character),
            ("x:../{a}", UriError::DotSegment),
            ("x://u@{h}/", UriError::Authority),
            (&format!("x:{}", expressions(17)), UriError::Expressions),
            (&format!("x:a{{?{}}}", variables(65)), UriError::Expressions),
            (&"x".repeat(MAX_BYTES + 1), UriError::Length),
        ] {
            assert_eq!(Template::parse(text).unwrap_err(), expected, "{text}");
        }
        let template = Template::parse(&format!("x:a{}{{?{}}}", expressions(15), "w,z")).unwrap();
        assert_eq!((template.literal_prefix(), template.variables().count()), ("x:a/", 17));
        assert_eq!(template.variables().last(), Some("z"));
    }

    /// A search that goes back would take 16 choices out of two thousand places.
    #[test]
    fn steps_grow_with_the_uri_and_the_template_alone() {
        let text = (0..16).map(|n| format!("a{{+v{n}}}")).collect::<Vec<_>>().concat();
        let template = Template::parse(&format!("x:{text}b")).unwrap();
        for length in [250, 500, 1_000, 2_000] {
            let text = format!("x:{}", "a".repeat(length));

            let steps: usize = template.ways(&text).iter().map(Vec::len).sum();

            assert_eq!(steps, template.steps.len() * (length + 3));
            for end in ["", "b"] {
                let uri = ResourceUri::parse(&format!("{text}{end}")).unwrap();
                assert_eq!(template.values(&uri), None);
            }
        }
        assert!(template.steps.iter().map(|step| step.after.len()).sum::<usize>() <= 2 * 34);
    }

    /// Whatever is asked for, filling ends where no URI goes on.
    #[test]
    fn filling_ends_with_the_longest_uri() {
        let name = "n".repeat(1_000);
        for (text, value) in [
            (format!("x:a{{?{name}*}}"), ",".repeat(1 << 20)),
            (format!("x:a{{?{name}}}"), "é".repeat(1 << 20)),
            (format!("x:a{{+{name}}}"), "a".repeat(1 << 20)),
        ] {
            let template = Template::parse(&text).unwrap();
            let values = BTreeMap::from([(name.clone(), value)]);
            assert_eq!(template.fill(&values), None);
        }
    }

    #[test]
    fn what_is_being_written_is_held_to_the_law_of_reads() {
        for (text, variable, value, wanted) in [
            ("n://t/{name}", "name", "", Some("n://t/")),
            ("n://t/{name}", "name", "a b", Some("n://t/a%20b")),
            ("n://t/{name}", "name", "v1.", Some("n://t/v1.")),
            ("n://t/{name}", "name", "secret/", None),
            ("n://t/{name}", "name", "50%", None),
            ("n://t/{+path}", "path", "open/", Some("n://t/open/")),
            ("n://t/{+path}", "path", "secr%65t/", None),
            ("n://t/{+path}", "path", "../", None),
            ("n://t/{+path}", "path", "a//", None),
            ("n://{host}/h/{p}", "host", "a", Some("n://a/h/")),
            ("n://{host}/h/{p}", "host", "A", None),
            ("n://{host}/h/{p}", "host", "a\u{ad}", None),
            ("n://t{?q}", "q", "a", Some("n://t?q=a")),
            ("n://h:{port}/a", "port", "80", Some("n://h:80/a")),
            ("n://h:{port}/a", "port", "080", None),
            ("n://p/{x:3}/{y}", "x", "se", Some("n://p/se/")),
            ("n://p/{x:3}/{y}", "x", "secret", None),
            ("n://a/{p}-{q}", "p", "x-y", None),
        ] {
            let template = Template::parse(text).unwrap();
            let filled = template.begin(&BTreeMap::new(), variable, value, true);
            assert_eq!(filled.as_deref(), wanted, "{text} {value}");
        }
        let template = Template::parse("n://{host}/h/{p}").unwrap();
        for (host, is_read) in [("a", true), ("a.", false)] {
            let filled = template.begin(&BTreeMap::new(), "host", host, false);
            assert_eq!(filled.is_some(), is_read, "{host}");
        }
    }

    fn sorted(uri: &str) -> (&str, Vec<&str>) {
        let (head, query) = uri.split_once('?').unwrap_or((uri, ""));
        let mut pairs: Vec<&str> = query.split('&').collect();
        pairs.sort_unstable();
        (head, pairs)
    }

    proptest! {
        #[test]
        fn values_give_the_uri_again(
            parts in prop::collection::vec(("[ab/.,-]{1,2}", "[+./;]?", any::<[bool; 3]>()), 1..4),
            form in prop::sample::select(vec!["", "{?q}", "{?q,r*}", "?f=1{&r*,q}"]),
            texts in prop::collection::vec("[ab./,%é ]{1,3}", 9),
        ) {
            let mut template = "x:".to_owned();
            for (at, (literal, operator, [two, list, _])) in parts.iter().enumerate() {
                let star = if *list { "*" } else { "" };
                let second = if *two { format!(",w{at}") } else { String::new() };
                write!(template, "{literal}{{{operator}v{at}{second}{star}}}").unwrap();
            }
            template.push_str(form);
            let names = ["v0", "w0", "v1", "w1", "v2", "w2", "q", "r", "-"];
            let values = names.iter().map(ToString::to_string).zip(texts).collect();
            let text = fill(&template, &values).unwrap();
            let (head, mut pairs) = sorted(&text);
            pairs.retain(|pair| !pair.is_empty());
            let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };

            let parsed = Template::parse(&template).ok().zip(ResourceUri::parse(&format!("{head}{query}")).ok());

            if let Some(values) = parsed.and_then(|(template, uri)| template.values(&uri)) {
                let again = fill(&template, &values).unwrap();
                prop_assert_eq!(sorted(&again), sorted(&text), "{}", template);
            }
        }

        #[test]
        fn plain_values_come_back(a in "[^/.%\\\\]{1,9}", b in "[a-z%é ,]{1,6}( [.]){0,2}", c in "[^%./\\\\\0]{1,5}") {
            let template = Template::parse("x://h/{a}/b-{b}{?c,d}").unwrap();
            let names = ["a", "b", "c"].map(str::to_owned);
            let values: BTreeMap<_, _> = names.into_iter().zip([a, b, c]).collect();
            prop_assume!(!values.values().any(|it| it.contains('\0')));
            let uri = ResourceUri::parse(&template.fill(&values).unwrap()).unwrap();

            prop_assert_eq!(template.values(&uri), Some(values));
        }
    }
}
