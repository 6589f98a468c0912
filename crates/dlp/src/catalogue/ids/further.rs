//! Numbers of countries of which one or two kinds are known, each with its check.

use crate::catalogue::{
    builders::national,
    checks::{at, is_short_date, one_digit, part, remainder, two_digits, value, varied, weighted},
    detector::{Candidate, Detector},
};

pub(super) const ALL: &[Detector] = &[
    national("cz_ico", "Czech or Slovak company number (IČO), beside words that name it", ico)
        .named(&["99999999", "999 99 999"])
        .beside(&["ičo", "ico", "identifikační číslo", "ič"])
        .fires(&["IČO: 27596044", r#"{"ico": "275 96 044"}"#])
        .passes(&["27596044", "IČO: 27596045"]),
    national("ro_cif", "Romanian company number (CIF, CUI), beside words that name it", romania)
        .named(&["99999999", "9999999", "RO99999999", "RO9999999", "999999999", "9999999999"])
        .beside(&["cif", "cui", "cod fiscal", "cod unic"])
        .fires(&["CUI 18547290", r#"{"cif": "RO18590044"}"#])
        .passes(&["18547290", "CUI 18547291"]),
    national("ar_cbu", "Argentine bank account (CBU), beside words that name it", cbu)
        .named(&["9999999999999999999999"])
        .beside(&["cbu", "clave bancaria"])
        .fires(&["CBU 2850590940090418135201"])
        .passes(&["2850590940090418135201", "CBU 2850590940090418135202"]),
    national(
        "uy_id",
        "Uruguayan identity or tax number (CI, RUT), beside words that name it",
        uruguay,
    )
    .named(&["9.999.999-9", "9999999-9", "99999999", "999999999999"])
    .beside(&["cédula", "cedula", "cédula de identidad", "rut", "rut uruguay"])
    .fires(&["cédula 1.234.567-2", r#"{"rut": "211003420017"}"#])
    .passes(&["1.234.567-2", "cédula 1.234.567-3", "RUT 211003420018"]),
    national("ir_national_code", "Iranian national code, beside words that name it", iran)
        .named(&["9999999999", "999-999999-9"])
        .beside(&["کد ملی", "کدملی", "national code", "kod melli", "code melli"])
        .fires(&["کد ملی 0073533246", r#"{"national_code": "473-117652-2"}"#])
        .passes(&["0073533246", "کد ملی 0073533247"]),
    national("kw_civil_id", "Kuwaiti civil number, beside words that name it", kuwait)
        .named(&["999999999999"])
        .beside(&["civil id", "civil number", "الرقم المدني"])
        .fires(&["civil id 284031500128"])
        .passes(&["284031500128", "civil id 284031500129"]),
    national("cu_identity", "Cuban identity number, beside words that name it", cuba)
        .named(&["99999999999"])
        .beside(&["carné de identidad", "carne de identidad", "carnet de identidad"])
        .fires(&["carné de identidad 84031512345"])
        .passes(&["84031512345", "carné de identidad 84133912345"]),
    national("ma_ice", "Moroccan enterprise number (ICE), beside words that name it", morocco)
        .named(&["999999999999999"])
        .beside(&["ice", "identifiant commun"])
        .fires(&["ICE 001561082000002"])
        .passes(&["001561082000002", "ICE 001561082000003"]),
    national("mk_edb", "Macedonian tax number (EDB), beside words that name it", macedonia)
        .named(&["9999999999999", "AA9999999999999"])
        .beside(&["edb", "едб", "danocen broj", "даночен број"])
        .fires(&["EDB 4034009582106", r#"{"edb": "MK4034009582106"}"#])
        .passes(&["4034009582106", "EDB 4034009582107"]),
    national("mu_nid", "Mauritian identity number, beside words that name it", mauritius)
        .named(&["A999999999999X", "a999999999999x"])
        .beside(&["nid", "national identity", "national id", "identity card"])
        .fires(&["NID R1503840192755", r#"{"nationalId": "R1503840192755"}"#])
        .passes(&["R1503840192755", "NID R1503840192756", "NID R9913840192755"]),
    national("lk_nic", "Sri Lankan identity card number (NIC), beside words that name it", lanka)
        .named(&["999999999A", "999999999a", "999999999999"])
        .beside(&["nic", "nic number", "national identity card", "identity card"])
        .fires(&["NIC 840753482V", r#"{"nic": "198457503482"}"#])
        .passes(&["840753482V", "NIC 849993482V", "NIC 840753482B"]),
    national("pt_cc", "Portuguese citizen card number, beside words that name it", citizen_card)
        .named(&[
            "999999999AA9",
            "99999999 9 AA9",
            "99999999-9-AA9",
            "999999999XX9",
            "99999999 9 XX9",
        ])
        .beside(&[
            "cartão de cidadão",
            "cartao de cidadao",
            "citizen card",
            "documento de identificação",
        ])
        .fires(&["cartão de cidadão 14839205 9 ZX7", r#"{"cartaoDeCidadao": "148392059ZX7"}"#])
        .passes(&["148392059ZX7", "cartão de cidadão 148392059ZX8"]),
];

fn macedonia(candidate: &Candidate<'_>) -> Option<i32> {
    let is_prefixed = candidate.matched().first().is_some_and(u8::is_ascii_alphabetic);
    let is_own = !is_prefixed || candidate.matched().starts_with(b"MK");
    let digits = candidate.digits();
    let rest = weighted(&digits, &[7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
    one_digit(is_own && varied(&digits) && (11 - rest) % 11 % 10 == at(&digits, 12))
}

/// Initial of the name, date of birth, serial, check character.
fn mauritius(candidate: &Candidate<'_>) -> Option<i32> {
    let (check, rest) = candidate.matched().split_last()?;
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 4, 6), part(&digits, 2, 4), part(&digits, 0, 2));
    let sum: u32 = (2..=14).rev().zip(rest).map(|(weight, byte)| weight * value(*byte)).sum();
    two_digits(is_born && (17 + 17 * sum - sum) % 17 == value(*check))
}

/// Year and day of birth, five hundred higher for women, and a letter for the right to vote.
fn lanka(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let (year, day) = if digits.len() == 9 {
        let has_right = matches!(candidate.matched().last(), Some(b'V' | b'X' | b'v' | b'x'));
        has_right.then(|| (1900 + part(&digits, 0, 2), part(&digits, 2, 5)))?
    } else {
        (part(&digits, 0, 4), part(&digits, 4, 7))
    };
    let is_day = matches!(day, 1..=366 | 501..=866);
    (is_day && (1900..2030).contains(&year)).then_some(4)
}

/// Letters count ten and more; every second character from the end is doubled.
fn citizen_card(candidate: &Candidate<'_>) -> Option<i32> {
    let kept = candidate.matched().iter().filter(|byte| byte.is_ascii_alphanumeric());
    let sum: u32 = kept
        .rev()
        .zip([false, true].iter().cycle())
        .map(|(byte, is_doubled)| match (value(*byte), *is_doubled) {
            (value, false) => value,
            (value, true) if value > 4 => 2 * value - 9,
            (value, true) => 2 * value,
        })
        .sum();
    two_digits(varied(&candidate.digits()) && sum.is_multiple_of(10))
}

fn ico(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let check = (11 - weighted(&digits, &[8, 7, 6, 5, 4, 3, 2]) % 11) % 10;
    one_digit(varied(&digits) && check == at(&digits, 7))
}

/// The weights count from the last digit before the check digit.
fn romania(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let (check, rest) = digits.split_last()?;
    let reversed: Vec<u8> = rest.iter().rev().copied().collect();
    let sum = weighted(&reversed, &[2, 3, 5, 7, 1, 2, 3, 5, 7]);
    one_digit(varied(&digits) && sum * 10 % 11 % 10 == u32::from(*check))
}

/// Bank and branch, then the account, with a check digit each.
fn cbu(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let (bank, account) = digits.split_at_checked(8)?;
    let check = |sum: u32| (10 - sum % 10) % 10;
    let is_bank = check(weighted(bank, &[7, 1, 3, 9, 7, 1, 3])) == at(bank, 7);
    let weights = [3, 9, 7, 1, 3, 9, 7, 1, 3, 9, 7, 1, 3];
    two_digits(is_bank && check(weighted(account, &weights)) == at(account, 13))
}

fn uruguay(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_right = if digits.len() == 8 {
        (10 - weighted(&digits, &[2, 9, 8, 7, 6, 3, 4]) % 10) % 10 == at(&digits, 7)
    } else {
        (11 - weighted(&digits, &[4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2]) % 11) % 11 == at(&digits, 11)
            && (1..=22).contains(&part(&digits, 0, 2))
    };
    one_digit(varied(&digits) && is_right)
}

fn iran(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let rest = weighted(&digits, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11;
    let check = if rest < 2 { rest } else { 11 - rest };
    one_digit(varied(&digits) && check == at(&digits, 9))
}

/// Century, date of birth, serial.
fn kuwait(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = matches!(at(&digits, 0), 2 | 3) && is_day(&digits, 1);
    let check = 11 - weighted(&digits, &[2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]) % 11;
    two_digits(is_born && check == at(&digits, 11))
}

/// Date of birth, century, serial, sex.
fn cuba(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    (varied(&digits) && is_day(&digits, 0)).then_some(4)
}

fn is_day(digits: &[u8], from: usize) -> bool {
    is_short_date(
        part(digits, from, from + 2),
        part(digits, from + 2, from + 4),
        part(digits, from + 4, from + 6),
    )
}

fn morocco(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    two_digits(varied(&digits) && remainder(&digits, 97) == 0)
}
