//! Bank accounts, and the numbers of banks.

use crate::{
    catalogue::{
        builders::{any, number},
        checks::{self, at, mod_11_10, one_digit, part, varied, weighted},
        detector::{Candidate, Detector},
        financial::iban::iban_length,
        naming::name,
    },
    text::words,
    vocabulary::Category,
};

pub(super) const ALL: &[Detector] = &[
    bank("us_routing_number", "US bank routing number (ABA), beside words that name it", aba)
        .named(&["999999999"])
        .beside(&["routing", "aba", "routing number", "rtn", "transit number", "ach", "wire"])
        .fires(&["routing number 083016613", r#"{"aba": "121547280"}"#])
        .passes(&["083016613", "routing number 083016614"]),
    bank("us_bank_account", "US bank account number, beside words that name it", us_account)
        .named(&[
            "99999999",
            "999999999",
            "9999999999",
            "99999999999",
            "999999999999",
            "9999999999999",
            "99999999999999",
            "999-999-9999",
            "9999-9999-9999",
        ])
        .beside(&[
            "bank account",
            "account number",
            "acct number",
            "checking account",
            "savings account",
            "acct no",
            "account no",
            "bank acct",
            "ach",
            "bacs",
        ])
        .fires(&["bank account 945456787654", r#"{"bankAccount": "9454567876"}"#])
        .passes(&[
            "945456787654",
            "account number 1111111111",
            r#"{"us_bank_account": {"routing_number": "121547280"}}"#,
        ]),
    bank("swift_bic", "Bank identifier code (SWIFT, BIC), beside words that name it", bic)
        .named(&["AAAAAAXX", "AAAAAAXXXXX"])
        .beside(&["swift", "bic", "swift code", "bank identifier"])
        .fires(&["BIC DEUTDEFF500", r#"{"swift": "NWBKGB2L"}"#])
        .passes(&["DEUTDEFF500", "SWIFT PROGRAMS", "BIC DEUTZZFF500"]),
    bank(
        "uk_sort_code",
        "UK sort code, with or without the account, beside words that name it",
        any_varied,
    )
    .named(&["99-99-99 99999999", "99-99-99", "999999 99999999", "99 99 99"])
    .beside(&["sort code", "sortcode", "uk account"])
    .fires(&["sort code 20-00-00", "sort code 60-16-13 31926819"])
    .passes(&["20-00-00", "sort code missing"]),
    bank("mx_clabe", "Mexican bank account (CLABE), beside words that name it", clabe)
        .named(&["999999999999999999"])
        .beside(&["clabe", "cuenta", "transferencia"])
        .fires(&["CLABE 032180000118359719"])
        .passes(&["032180000118359719", "CLABE 032180000118359718"]),
    bank("in_ifsc", "Indian bank branch code, beside words that name it", any)
        .named(&["AAAA0XXXXXX"])
        .beside(&["ifsc", "ifsc code", "branch code"])
        .fires(&["IFSC HDFC0001234"])
        .passes(&["HDFC0001234"]),
    bank(
        "au_bsb",
        "Australian bank branch, with or without the account, beside words that name it",
        any_varied,
    )
    .named(&["999-999 999999999", "999-999 99999999", "999-999", "999999"])
    .beside(&["bsb", "bank state branch"])
    .fires(&["BSB 062-000"])
    .passes(&["062-000"]),
    bank("ca_bank_transit", "Canadian bank transit number, beside words that name it", any_varied)
        .named(&["99999-999", "999999999", "99999 999"])
        .beside(&["transit number", "institution number", "transit no"])
        .fires(&["transit number 10009-001"])
        .passes(&["10009-001"]),
    bank("es_ccc", "Spanish bank account (CCC), beside words that name it", ccc)
        .named(&["99999999999999999999", "9999 9999 99 9999999999", "9999-9999-99-9999999999"])
        .beside(&["cuenta", "ccc", "código cuenta cliente", "cuenta bancaria"])
        .fires(&["cuenta 6710 8438 00 4678508162"])
        .passes(&["6710 8438 00 4678508162", "cuenta 6710 8438 01 4678508162"]),
    bank("eu_vat_number", "VAT number of a business in Europe", vat)
        .alone(&[
            "DE999999999",
            "DE 999999999",
            "DE 999 999 999",
            "DE-999-999-999",
            "AAA99999999",
            "NL999999999B99",
            "BE0999999999",
            "BE 0999.999.999",
            "CHE-999.999.999",
        ])
        .named(&[
            "AA999999999",
            "AA99999999",
            "AA9999999999",
            "AA99999999999",
            "AAX99999999",
            "AA999999999999",
            "AA 999 9999 99",
            "AA9999999A",
            "AAXX999999999",
            "AAA999999999",
            "99999999",
            "999999999",
            "9999999999",
        ])
        .beside(&[
            "vat",
            "ust id",
            "ust idnr",
            "ustid",
            "umsatzsteuer",
            "tva",
            "btw",
            "iva",
            "moms",
            "vat number",
            "uid nummer",
            "uid nr",
            "mwst",
        ])
        .fires(&[
            "DE 136 695 976",
            "VAT GB980780684",
            r#"{"vatNumber": "ATU55882129"}"#,
            "VAT 980 7806 84",
        ])
        .passes(&[
            "DE136695977",
            "GB980780684",
            r#"{"uid": 980780684}"#,
            "DE12345678",
            "XX123456789 VAT",
        ]),
];

/// A number of a bank or of an account.
const fn bank(
    name: &'static str,
    description: &'static str,
    check: fn(&Candidate<'_>) -> Option<i32>,
) -> Detector {
    number(name, Category::Financial, description, check)
}

fn any_varied(candidate: &Candidate<'_>) -> Option<i32> {
    varied(&candidate.digits()).then_some(0)
}

/// Digits that differ, below no key that names the bank.
fn us_account(candidate: &Candidate<'_>) -> Option<i32> {
    let names_bank = |key: &[u8]| words::names(key, &["routing", "routing number", "aba", "rtn"]);
    (varied(&candidate.digits()) && !candidate.key.is_some_and(names_bank)).then_some(0)
}

/// Weights 3, 7 and 1; the first two digits are a district of the Federal Reserve.
fn aba(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[3, 7, 1, 3, 7, 1, 3, 7, 1]);
    let is_district = matches!(part(&digits, 0, 2), 0..=12 | 21..=32 | 61..=72 | 80);
    let different = (0..10).filter(|digit| digits.contains(digit)).count();
    one_digit(different > 2 && is_district && sum.is_multiple_of(10))
}

/// Four letters for the bank, then a country.
fn bic(candidate: &Candidate<'_>) -> Option<i32> {
    let country = candidate.matched().get(4..6)?;
    let is_known = iban_length(country).is_some() || OTHERS.chunks(2).any(|other| other == country);
    is_known.then_some(2)
}

/// Countries with banks and without IBANs.
const OTHERS: &[u8] =
    b"USCAAUNZJPCNHKSGINKRTWTHMYIDPHVNZANGKEMXARCLCOPEUYMAPABOVEECPYBDLKNPTZUGGHRU";

fn clabe(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let weights = [3, 7, 1].iter().cycle();
    let sum: u32 = digits.iter().take(17).zip(weights).map(|(d, w)| u32::from(*d) * w % 10).sum();
    one_digit((10 - sum % 10) % 10 == at(&digits, 17))
}

/// One check digit for bank and branch, one for the account.
fn ccc(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let check = |sum: u32| match 11 - sum % 11 {
        10 => 1,
        11 => 0,
        check => check,
    };
    let bank = check(weighted(&digits, &[4, 8, 5, 10, 9, 7, 3, 6]));
    let account = check(weighted(digits.get(10..)?, &[1, 2, 4, 8, 5, 10, 9, 7, 3, 6]));
    checks::two_digits(bank == at(&digits, 8) && account == at(&digits, 9))
}

/// The country's own check where it is simple, its length elsewhere.
fn vat(candidate: &Candidate<'_>) -> Option<i32> {
    let text: Vec<u8> =
        candidate.matched().iter().filter(|b| b.is_ascii_alphanumeric()).copied().collect();
    let (country, rest) = text.split_at_checked(2)?;
    let digits = candidate.digits();
    if country.iter().all(u8::is_ascii_digit) {
        return vat_without_country(candidate, &digits);
    }
    match country {
        b"DE" => one_digit(rest.len() == 9 && at(&digits, 0) != 0 && mod_11_10(&digits)),
        b"AT" => one_digit(rest.len() == 9 && rest.first() == Some(&b'U') && austria(&digits)),
        b"BE" => one_digit(97 - part(&digits, 0, 8) % 97 == part(&digits, 8, 10)),
        b"NL" => (rest.len() == 12).then_some(6),
        b"CH" => one_digit(rest.first() == Some(&b'E') && switzerland(&digits)),
        b"PT" | b"EL" | b"EE" => (rest.len() == 9).then_some(2),
        b"GB" | b"XI" => (matches!(rest.len(), 9 | 12) && britain(&digits)).then_some(4),
        b"FR" | b"IT" | b"LV" | b"HR" => (rest.len() == 11).then_some(2),
        b"ES" | b"IE" | b"CY" => (rest.len() == 9 || rest.len() == 8).then_some(2),
        b"DK" | b"FI" | b"HU" | b"LU" | b"MT" | b"SI" => (rest.len() == 8).then_some(2),
        b"PL" | b"SK" => (rest.len() == 10).then_some(2),
        b"CZ" | b"BG" | b"RO" => matches!(rest.len(), 8..=10).then_some(2),
        b"SE" | b"LT" => matches!(rest.len(), 9 | 12).then_some(2),
        _ => None,
    }
}

/// A number of Luxembourg, Germany, the United Kingdom or Belgium, and of no user.
fn vat_without_country(candidate: &Candidate<'_>, digits: &[u8]) -> Option<i32> {
    let is_user = |name: &[u8]| words::names(name, &["uid"]);
    let is_right = match digits.len() {
        8 => part(digits, 0, 6) % 89 == part(digits, 6, 8),
        9 => at(digits, 0) != 0 && mod_11_10(digits) || britain(digits),
        10 => at(digits, 0) < 2 && 97 - part(digits, 0, 8) % 97 == part(digits, 8, 10),
        _ => false,
    };
    let is_other = candidate.key.is_some_and(is_user) || name(candidate).is_some_and(is_user);
    one_digit(is_right && varied(digits) && !is_other)
}

fn austria(digits: &[u8]) -> bool {
    let sum: u32 = (0..7)
        .map(|place| match (place % 2, at(digits, place)) {
            (0, digit) => digit,
            (_, digit) => digit * 2 / 10 + digit * 2 % 10,
        })
        .sum();
    (96 - sum) % 10 == at(digits, 7)
}

fn switzerland(digits: &[u8]) -> bool {
    (11 - weighted(digits, &[5, 4, 3, 2, 7, 6, 5, 4]) % 11) % 11 == at(digits, 8)
}

fn britain(digits: &[u8]) -> bool {
    let rest = (weighted(digits, &[8, 7, 6, 5, 4, 3, 2]) + part(digits, 7, 9)) % 97;
    rest == 0 || rest == 42
}
