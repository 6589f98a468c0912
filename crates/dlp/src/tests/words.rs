//! Passwords of letters alone: thousands that make no words or stand where nothing else can, and words of
//! programs and of sentences.

use super::{
    named::{Sequence, names, wrong},
    *,
};

/// Words that are nothing but words.
const PLAIN: [&str; 16] = [
    "sunshine", "dragon", "monkey", "football", "winter", "london", "pepper", "coffee", "garden",
    "orange", "panther", "mountain", "kaiser", "soleil", "penguin", "harbour",
];

#[test]
fn letters_that_are_no_words_are_a_password() {
    let mut sequence = Sequence(5);
    let words: Vec<&str> = names()
        .filter(|name| !name.contains(['_', '-', '.']) && !["mdp", "PGPASSWORD"].contains(name))
        .collect();
    let texts: Vec<String> = (0..500)
        .flat_map(|_| {
            let name = sequence.pick(&words);
            let length = 8 + sequence.next(6);
            let value = sequence.of("abcdefghijklmnopqrstuvwxyz", length);
            [
                format!("{name}: {value}"),
                format!("The {name} is {value}."),
                format!("the {name} is {value}, please change it"),
                format!("{name} = '{value}'"),
            ]
        })
        .collect();

    let missed = wrong(&texts, true);

    // Some rows of letters are words by chance.
    assert!(missed.len() * 10 <= texts.len(), "{} missed: {:#?}", missed.len(), missed.get(..20));
}

#[test]
fn words_are_a_password_where_nothing_else_can_stand() {
    let names = "password Passwort contraseña senha db_password パスワード";
    let names: Vec<&str> = names.split(' ').collect();
    let mut sequence = Sequence(6);
    let mut texts = Vec::new();
    for _ in 0..400 {
        let name = sequence.pick(&names);
        let word = sequence.pick(&PLAIN);
        let value = format!("{word}{}", sequence.pick(&["", "winter", "-dragon", "-of-london"]));
        texts.extend([
            format!("{name}: {value}"),
            format!("{name} = {value}"),
            format!("{name}=\"{value}\""),
            format!("* {name}: {value}"),
            format!("user: ada, {name}: {value}"),
            format!("users:\n- name: ada\n  {name}: {value}\n  admin: true"),
            format!("[client]\nuser=root\n{name}={value}\n"),
            format!("# settings\n{name} = \"{value}\"\nport = 80\n"),
            format!("Saved:\n{{\n  \"id\": 7,\n  \"{name}\": \"{value}\"\n}}\n"),
            format!("GET /login?user=ada&{name}={value}&x=1").replace("Passwort", "password"),
            format!("<tr><th>{name}</th><td>{value}7531</td></tr>"),
            format!("machine git.example.org login ada password {value}"),
            json!({ "id": 7, name: { "type": "string", "value": value } }).to_string(),
            json!({ "passwords": [value, "zebras"] }).to_string(),
            format!("Result:\n{{\"value\": \"{value}\", \"key\": \"{name}\"}}"),
            format!("[\n  {{\n    \"value\": \"{value}\",\n    \"name\": \"{name}\"\n  }}\n]"),
        ]);
        let phrase = format!("{word}-{}-{}", sequence.pick(&PLAIN), sequence.pick(&PLAIN));
        texts.push(format!("The {name} is {phrase}, as you know."));
        texts.push(format!("let {name} = \"{phrase}\";"));
    }

    let missed = wrong(&texts, true);

    assert_none(&missed, "missed");
}

#[test]
fn words_in_programs_and_sentences_are_no_password() {
    let mut sequence = Sequence(7);
    let words = "required incorrect optional getpass serializer validated encrypted hashed \
        obligatoire abgelaufen incorrecta cleaned normalized authenticated secret \
        case-sensitive read-only auto-generated current-password user-password form";
    let words: Vec<&str> = words.split(' ').collect();
    let mut texts = Vec::new();
    for _ in 0..400 {
        let name = sequence.pick(&["password", "passwd", "passphrase", "passwort", "db_password"]);
        let value = sequence.pick(&words);
        texts.extend([
            format!("The {name} is {value}."),
            format!("Das {name} ist {value} und so weiter."),
            format!("let {name} = {};", value.replace('-', "_")),
            format!("login(\n    {name}={value},\n    user=name,\n)"),
            format!("{{\n  user: name,\n  {name}: {value}\n}}"),
            format!("def login():\n    user = name\n    {name} = {value}\n    return user"),
            format!("Read on.\n{name}: {value}\nand so on."),
            format!("call('x', {{'{name}': '{value}'}})"),
            format!("<input type=\"{name}\" name=\"{name}\" class=\"{value}\">"),
            format!("<label>{name}</label><span>{value}</span>"),
        ]);
    }

    let found = wrong(&texts, false);

    assert_none(&found, "found");
}
