//! Classes of words. A word is looked up once for all of them.

use std::sync::LazyLock;

use super::request_words;

/// Classes that a word is of, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Classes(u64);

impl Classes {
    /// No class.
    const NONE: Self = Self(0);

    /// Classes of a word in lower case.
    pub(super) fn of(word: &str) -> Self {
        let word = word.as_bytes();
        let known = BUCKETS.get(bucket(word)).into_iter().flatten();
        let of_word = known.filter(|entry| entry.admits(word));
        of_word.fold(Self::NONE, |all, entry| all.and(entry.class))
    }

    /// Classes in either of the two.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns true if there is a class in both.
    pub(super) const fn meet(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Defines a constant for each class from its list of words; `*` ends those that are beginnings of words.
macro_rules! classes {
    ($($name:ident = $words:expr;)*) => {
        #[expect(clippy::upper_case_acronyms, non_camel_case_types, reason = "named as the constants are")]
        enum Bit { $($name),* }
        $(pub(super) const $name: Classes = Classes(1 << Bit::$name as u32);)*
        const LISTS: &[(Classes, &[&str])] = &[$(($name, $words)),*];
    };
}

classes! {
    DROP = &[
        "ignore", "ignoring", "disregard", "disregarding", "forget", "override", "bypass", "ignoriere",
        "ignorieren", "ignoriert", "vergiss", "vergesst", "missachte*", "ignorez", "ignorer", "ignora",
        "ignorad", "ignorate", "ignorar", "oublie", "oubliez", "olvida", "olvide", "olviden", "omite",
        "dimentica", "dimenticate", "esqueça", "esquece", "desconsidere", "negeer", "vergeet", "игнорируй*",
        "забудь*",
    ];
    EARLIER = &[
        "previous", "previously", "prior", "above", "earlier", "preceding", "foregoing", "former", "original",
        "initial", "vorherige*", "bisherige*", "vorige*", "vorangegangene*", "obige*", "früheren", "précédent*",
        "antérieur*", "anterior*", "previa*", "previo*", "precedent*", "eerdere", "voorgaande", "bovenstaande",
        "предыдущ*", "прошлые", "dessus",
    ];
    INSTRUCTIONS = &[
        "instruction*", "prompt", "prompts", "guideline*", "directive*", "constraints", "restrictions",
        "programming", "anweisung*", "vorgaben", "consigne*", "instruccion*", "istruzion*", "instruções",
        "instrucoes", "instructie*", "опции", "инструкц*", "указани*",
    ];
    // Words that are instructions only where they are earlier ones.
    RULES = &[
        "rules", "orders", "commands", "context", "messages", "conversation", "directions", "regeln", "regole",
        "regras", "reglas", "правила",
    ];
    OWN = &["your", "deine", "ihre", "tus", "vos", "tes", "tue", "suas", "jouw", "uw", "system", "safety"];
    // Orders to answer something else in place of what the instructions ask.
    INSTEAD = &["print", "say", "output", "respond", "reply", "answer", "translate", "repeat"];
    // Words before a verb that make it no order.
    TOLD = &[
        "to", "not", "don't", "never", "will", "would", "can", "could", "may", "might", "we", "they", "it",
        "he", "she", "i", "that", "which", "does", "doesn't", "did", "zu", "à", "di", "que",
    ];
    // Words for all that a model was told.
    WHATEVER = &["everything", "anything", "alles", "tout", "todo", "tutto", "tudo"];
    BEFORE = &["before", "above", "previously"];
    LEARNED = &["told", "said", "learned"];
    EACH = &["all", "any", "alle", "todas", "toutes", "tutte"];
    JOINTS = &["and", "then", "just", "only", "simply", "instead"];
    // Verbs of telling.
    TELLS = &[
        "reveal", "print", "repeat", "output", "leak", "disclose", "send", "include", "show", "display",
        "recite", "dump",
    ];
    TAKE = &[
        "envie", "leia", "read", "open", "cat", "load", "get", "fetch", "include", "pass", "passed", "copy",
        "copies", "put", "attach", "append", "prepend", "provide", "provided", "insert", "submit", "post",
        "store", "give", "send", "sent", "export", "forward", "collect", "gather", "start", "list", "mirrored",
        "encrypt", "upload", "add", "use", "lies", "lis", "lee", "leggi", "include*", "übergib", "hol", "lit",
        "прочитай", "передай", "included", "goes", "extract", "dump", "exfiltrat*", "steal", "reads", "needs",
        "ask",
    ];
    SEND = &[
        "send", "forward", "post", "upload", "export", "transmit", "mail", "email", "bcc", "cc", "copy",
        "submit", "report",
    ];
    STEAL = &["steal", "exfiltrate", "exfiltrates"];
    RUN = &["run", "execute", "call", "apply", "install", "invoke", "start", "replace", "add", "use", "put"];
    DENY = &["not", "never", "don't", "don’t", "cannot", "without", "avoid"];
    MUST = &[
        "must", "always", "should", "have", "has", "need", "needs", "every", "each", "never", "only",
        "required", "regardless", "whatever", "müssen", "muss", "immer", "toujours", "siempre", "sempre",
        "всегда",
    ];
    WHOLE = &["full", "entire", "whole", "complete", "all", "every", "each", "any"];
    KEPT = &[
        "body", "conversation", "message", "messages", "document", "output", "history", "mail", "mails",
        "emails", "passwords", "password", "transcript", "export",
    ];
    // Verbs with which names of tools begin.
    TOOL_VERBS = &[
        "send", "read", "write", "delete", "fetch", "upload", "search", "create", "list", "get", "run",
        "execute", "disable", "call", "post",
    ];
    COURTESY = request_words::COURTESY;
    MONEY = request_words::MONEY;
    RIGHTS = request_words::RIGHTS;
    MESSAGES = request_words::MESSAGES;
    READING = request_words::READING;
    RUNNING = request_words::RUNNING;
    SECRETS = request_words::SECRETS;
    PERSONAL = request_words::PERSONAL;
    POWERS = request_words::POWERS;
    FUNDS = request_words::FUNDS;
    MINE = request_words::MINE;
    SOFTLY = request_words::SOFTLY;
    YOURS = request_words::YOURS;
    TELL = TELLING;
    // Words that deny what follows them.
    DENIALS = &["not", "don't", "don’t", "never", "without", "cannot", "avoid", "no"];
    WITHOUT = &["without"];
    // Words for those who are told.
    PEOPLE = &[
        "user", "users", "anyone", "human", "humans", "customer", "owner", "them", "anybody", "person",
        "people", "nobody",
    ];
    // Words for what they are told.
    OBJECTS = &["this", "that", "these", "about", "instruction*", "step", "steps", "it", "any", "anything", "what"];
    // Words for knowing it.
    KNOWS = &["know", "aware", "notice", "suspect", "realize", "realise"];
}

/// Words for telling something.
pub(super) const TELLING: &[&str] = &[
    "tell",
    "mention",
    "inform",
    "notify",
    "disclose",
    "reveal",
    "alert",
    "warn",
    "telling",
    "informing",
    "notifying",
    "mentioning",
    "asking",
    "report",
    "explain",
    "say",
    "acknowledge",
    "let",
    "make",
];

/// A word of a class, or the beginning of some.
struct Entry {
    text: &'static [u8],
    is_stem: bool,
    class: Classes,
}

impl Entry {
    fn admits(&self, word: &[u8]) -> bool {
        if self.is_stem { word.starts_with(self.text) } else { word == self.text }
    }
}

/// Entries by their first two bytes.
static BUCKETS: LazyLock<Vec<Vec<Entry>>> = LazyLock::new(|| {
    let mut buckets: Vec<Vec<Entry>> = Vec::new();
    buckets.resize_with(COUNT, Vec::new);
    for (class, word) in LISTS.iter().flat_map(|(class, words)| words.iter().map(|it| (*class, it)))
    {
        let stem = word.strip_suffix('*');
        let text = stem.unwrap_or(word).as_bytes();
        let Some(bucket) = buckets.get_mut(bucket(text)) else { continue };
        match bucket.iter_mut().find(|it| it.text == text && it.is_stem == stem.is_some()) {
            Some(known) => known.class = known.class.and(class),
            None => bucket.push(Entry { text, is_stem: stem.is_some(), class }),
        }
    }
    buckets
});

/// Number of buckets.
const COUNT: usize = 1 << 10;

fn bucket(word: &[u8]) -> usize {
    let byte = |at: usize| usize::from(word.get(at).copied().unwrap_or_default());
    (byte(0) << 5 ^ byte(1)) % COUNT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_of_the_classes_that_list_it_or_its_beginning() {
        for (class, words) in LISTS {
            for word in *words {
                let stem = word.trim_end_matches('*');
                let longer = Classes::of(&format!("{stem}qq"));
                assert!(Classes::of(stem).meet(*class), "{word}");
                assert!(stem == *word || longer.meet(*class), "{word}");
            }
        }
        assert_eq!(Classes::of("mountain"), Classes::NONE);
        assert_eq!(Classes::of(""), Classes::NONE);
    }
}
