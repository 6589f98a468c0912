//! Taking findings out of a value and leaving valid JSON behind.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use serde_json::Value;

use portcullis_json::{Document, Edits, JsonValue, Kind, Members, Node};

use crate::{
    findings::{
        finding::{Finding, Findings, How, Span},
        subject::Subject,
    },
    mask::{
        inside,
        replacement::{self, Mask},
        schema::SchemaPlace,
        stretches::{Extent, Replacement, replace, unused},
    },
};

/// The document with those findings masked for which `choose` names a way to.
pub(crate) fn apply(
    document: &Document,
    findings: &Findings,
    schema: Option<&Value>,
    extent: Extent,
    choose: impl Fn(&Finding) -> Option<Mask>,
) -> Document {
    let mut marks = Vec::new();
    for finding in findings {
        if let Some(mask) = choose(finding) {
            marks.push(MaskedFinding { finding, mask });
        }
    }
    // Findings come in document order, and so does the walk.
    marks.sort_by_key(|mark| mark.finding.place);
    let subject = findings.subject();
    let edits = Edits::default();
    let mut walk = MaskWalk { marks: &marks, next: 0, extent, subject, edits };
    walk.value(document.root(), &schema.map(SchemaPlace::root).unwrap_or_default());
    document.edited(&walk.edits)
}

/// A finding that is to be masked, and how.
struct MaskedFinding<'a> {
    finding: &'a Finding,
    mask: Mask,
}

/// Goes through a value in document order, counting its keys, texts and numbers as the scan did.
struct MaskWalk<'a> {
    /// Matches that are still ahead.
    marks: &'a [MaskedFinding<'a>],
    next: u32,
    extent: Extent,
    subject: Option<&'a Subject>,
    edits: Edits,
}

/// A member whose name is masked.
struct RenamedMember<'a> {
    member: Node<'a>,
    key: &'a str,
    wanted: String,
}

impl<'a> MaskWalk<'a> {
    fn value(&mut self, node: Node<'_>, place: &SchemaPlace<'_>) {
        match node.kind() {
            Kind::Null | Kind::Bool(_) => {}
            Kind::Text(text) => {
                let marks = self.here();
                if !marks.is_empty() {
                    let masked = place.instead_of_text(self.masked(text, marks));
                    self.edits.value(node, Value::String(masked));
                }
            }
            Kind::Number(literal) => {
                let marks = self.here();
                if let Some(first) = marks.first() {
                    let masked = place.instead_of_number(self.whole(literal, first));
                    self.edits.value(node, masked);
                }
            }
            Kind::Array(items) => {
                for (index, item) in items.enumerate() {
                    if self.marks.is_empty() {
                        return;
                    }
                    self.value(item, &place.element(index));
                }
            }
            Kind::Object(members) => self.object(members, place),
        }
    }

    fn object(&mut self, members: Members<'_>, place: &SchemaPlace<'_>) {
        let mut renamed = Vec::new();
        for (key, member) in members.clone() {
            if self.marks.is_empty() {
                break;
            }
            let marks = self.here();
            if !marks.is_empty() {
                renamed.push(RenamedMember { member, key, wanted: self.masked(key, marks) });
            }
            self.value(member, &place.member(key));
        }
        if !renamed.is_empty() {
            self.rename(members, renamed);
        }
    }

    /// Renames members, each to a name that no sibling has.
    fn rename(&mut self, members: Members<'_>, renamed: Vec<RenamedMember<'_>>) {
        let old: HashSet<&str> = renamed.iter().map(|it| it.key).collect();
        let kept = members.map(|(key, _)| key).filter(|key| !old.contains(key));
        let mut taken: HashSet<String> = kept.map(str::to_owned).collect();
        let mut uses = HashMap::new();
        for RenamedMember { member, wanted, .. } in renamed {
            self.edits.name(member, unused(&mut taken, &mut uses, &wanted));
        }
    }

    /// The marks of the next key, text or number.
    fn here(&mut self) -> &'a [MaskedFinding<'a>] {
        let place = self.next;
        self.next += 1;
        let count = self.marks.iter().take_while(|mark| mark.finding.place == place).count();
        let (here, ahead) = self.marks.split_at(count);
        self.marks = ahead;
        here
    }

    fn masked(&self, text: &str, marks: &[MaskedFinding<'_>]) -> String {
        let placeholder = || {
            let first = marks.first().map(|mark| &mark.finding.detector);
            first.map_or_else(String::new, |it| replacement::placeholder(it).into_owned())
        };
        let withheld = marks.iter().find(|mark| mark.mask == Mask::Withhold);
        if let Some(withheld) = withheld {
            return replacement::notice(&withheld.finding.detector).into_owned();
        }
        if self.extent == Extent::Everything {
            return placeholder();
        }
        let all = marks.iter().flat_map(|mark| self.replacements(text, mark)).collect();
        inside::replace(text, all, self.extent).unwrap_or_else(|all| match self.extent {
            Extent::Matches => replace(text, all),
            Extent::Leaves | Extent::Everything => placeholder(),
        })
    }

    fn replacements<'m>(&self, text: &str, mark: &MaskedFinding<'m>) -> Vec<Replacement<'m>> {
        let MaskedFinding { finding, mask } = *mark;
        let replacement = |span: &Span| Replacement {
            span: span.range.clone(),
            detector: &finding.detector,
            text: self.instead(text, span, finding, mask),
        };
        finding.spans.iter().map(replacement).collect()
    }

    fn instead(&self, text: &str, span: &Span, finding: &Finding, mask: Mask) -> Cow<'static, str> {
        let range = span.range.start as usize..span.range.end as usize;
        match (span.how, mask, text.as_bytes().get(range)) {
            (How::Otherwise(Some(pseudonym)), Mask::Pseudonym, _) => {
                replacement::of_pseudonym(&finding.detector, pseudonym)
            }
            (How::Plainly, _, Some(matched)) => {
                let key = self.subject.map(|subject| &subject.key);
                replacement::of_value(mask, &finding.detector, finding.normal_form, matched, key)
            }
            (How::Otherwise(_) | How::Plainly, _, _) => replacement::placeholder(&finding.detector),
        }
    }

    /// Replacement of a whole number.
    fn whole(&self, number: &str, mark: &MaskedFinding<'_>) -> String {
        let only = mark.finding.spans.first().filter(|span| {
            // The scan reads `4e3` as `4000`: then the digits are not those that stand here.
            mark.finding.spans.len() == 1
                && span.range == (0..crate::body::segment::small(number.len()))
        });
        match only {
            Some(span) => self.instead(number, span, mark.finding, mark.mask).into_owned(),
            None => replacement::placeholder(&mark.finding.detector).into_owned(),
        }
    }
}
