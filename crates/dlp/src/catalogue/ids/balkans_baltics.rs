//! Numbers of persons in Croatia, the states of former Yugoslavia, the Baltic states, Russia,
//! Ukraine and Kazakhstan.

use crate::catalogue::{
    builders::national,
    checks::{at, is_short_date, mod_11_10, one_digit, part, two_digits, varied, weighted},
    detector::{Candidate, Detector},
};

pub(super) const ALL: &[Detector] = &[
    national("hr_oib", "Croatian personal number, beside words that name it", oib)
        .named(&["99999999999", "HR99999999999"])
        .beside(&["oib", "osobni identifikacijski broj"])
        .fires(&["OIB 59998142040"])
        .passes(&["59998142040", "OIB 59998142041"]),
    national("jmbg", "Personal number of Slovenia (EMŠO), Serbia, Bosnia, Montenegro or North Macedonia, beside words that name it", jmbg)
        .named(&["9999999999999"])
        .beside(&["emšo", "emso", "jmbg", "jmb", "embg", "matični broj", "maticni broj"])
        .fires(&["EMŠO: 1503084508999", r#"{"jmbg": "1503084508840"}"#])
        .passes(&["1503084508999", "JMBG 1503084508998"]),
    national("si_tax_id", "Slovenian tax number, beside words that name it", slovenia)
        .named(&["99999999", "SI99999999"])
        .beside(&["davčna številka", "davcna stevilka", "davčna", "davcna"])
        .fires(&["davčna številka 50223054"])
        .passes(&["50223054", "davčna številka 50223055"]),
    national("ee_lt_personal_code", "Estonian or Lithuanian personal code, beside words that name it", baltic)
        .named(&["99999999999"])
        .beside(&["isikukood", "asmens kodas", "personal code", "personal id code"])
        .fires(&["isikukood 38403156592", r#"{"asmensKodas": "38403154140"}"#])
        .passes(&["38403156592", "isikukood 38403156593"]),
    national("lv_personal_code", "Latvian personal code, beside words that name it", latvia)
        .named(&["999999-99999", "99999999999"])
        .beside(&["personas kods", "personas koda", "personal code"])
        .fires(&["personas kods 150384-15941"])
        .passes(&["150384-15941", "personas kods 159984-15941"]),
    national("ru_inn", "Russian tax number, beside words that name it", inn)
        .named(&["999999999999", "9999999999"])
        .beside(&["инн", "inn"])
        .fires(&["ИНН 134238675016", r#"{"inn": "7959501235"}"#])
        .passes(&["134238675016", "ИНН 134238675017"]),
    national("ru_snils", "Russian pension insurance number", snils)
        .alone(&["999-999-999 99"])
        .named(&["99999999999"])
        .beside(&["снилс", "snils"])
        .fires(&["112-233-445 95", "СНИЛС 11223344595"])
        .passes(&["112-233-445 96", "11223344595"]),
    national("ru_passport", "Russian passport number, beside words that name it", |_| Some(0))
        .named(&["9999 999999", "99 99 999999", "9999999999"])
        .beside(&["паспорт", "паспорта"])
        .fires(&["паспорт 4509 123456"])
        .passes(&["4509 123456"]),
    national("ua_tax_id", "Ukrainian tax number, beside words that name it", ukraine)
        .named(&["9999999999"])
        .beside(&["рнокпп", "іпн", "ипн", "rnokpp", "ідентифікаційний код"])
        .fires(&["РНОКПП 5029709140"])
        .passes(&["5029709140", "РНОКПП 5029709141"]),
    national("kz_iin", "Kazakh individual number, beside words that name it", kazakhstan)
        .named(&["999999999999"])
        .beside(&["иин", "жсн", "iin"])
        .fires(&["ИИН 840315301233"])
        .passes(&["840315301233", "ИИН 840315301239"]),
];

fn oib(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    one_digit(varied(&digits) && mod_11_10(digits.get(digits.len().checked_sub(11)?..)?))
}

/// Day, month, last three digits of the year, region, serial.
fn jmbg(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 5, 7), part(&digits, 2, 4), part(&digits, 0, 2));
    let check = 11 - weighted(&digits, &[7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
    let check = if check > 9 { 0 } else { check };
    let is_year = matches!(at(&digits, 4), 0 | 8 | 9);
    two_digits(is_born && is_year && check == at(&digits, 12))
}

fn slovenia(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let check = (11 - weighted(&digits, &[8, 7, 6, 5, 4, 3, 2]) % 11) % 10;
    one_digit(at(&digits, 0) != 0 && check == at(&digits, 7))
}

/// Century and sex, date of birth, serial; when the first weights give ten, others decide.
fn baltic(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 1, 3), part(&digits, 3, 5), part(&digits, 5, 7));
    let first = weighted(&digits, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 1]) % 11;
    let second = weighted(&digits, &[3, 4, 5, 6, 7, 8, 9, 1, 2, 3]) % 11 % 10;
    let check = if first == 10 { second } else { first };
    two_digits(matches!(at(&digits, 0), 1..=8) && is_born && check == at(&digits, 10))
}

/// Codes given since 2017 begin with 32 and hold no date.
fn latvia(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 4, 6), part(&digits, 2, 4), part(&digits, 0, 2));
    (is_born || part(&digits, 0, 2) == 32).then_some(4)
}

fn inn(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let check = |weights: &[u32]| weighted(&digits, weights) % 11 % 10;
    let is_right = match digits.len() {
        10 => check(&[2, 4, 10, 3, 5, 9, 4, 6, 8]) == at(&digits, 9),
        _ => {
            check(&[7, 2, 4, 10, 3, 5, 9, 4, 6, 8]) == at(&digits, 10)
                && check(&[3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8]) == at(&digits, 11)
        }
    };
    one_digit(varied(&digits) && is_right)
}

fn snils(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[9, 8, 7, 6, 5, 4, 3, 2, 1]);
    two_digits(sum % 101 % 100 == part(&digits, 9, 11))
}

/// Days since 1899, serial, sex.
fn ukraine(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    // The first weight is -1, which is ten modulo eleven.
    let sum = weighted(&digits, &[10, 5, 7, 9, 4, 6, 10, 5, 7]);
    one_digit(varied(&digits) && sum % 11 % 10 == at(&digits, 9))
}

fn kazakhstan(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 0, 2), part(&digits, 2, 4), part(&digits, 4, 6));
    let first = weighted(&digits, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]) % 11;
    let second = weighted(&digits, &[3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 2]) % 11;
    let check = if first == 10 { second } else { first };
    two_digits(is_born && check == at(&digits, 11))
}
