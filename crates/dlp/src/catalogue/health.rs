//! Numbers of patients, of those who treat them, and of what they suffer from.

use crate::{
    catalogue::{
        builders::{any, number},
        checks::{at, luhn, one_digit, part, two_digits, value, varied, weighted},
        detector::{Candidate, Detector},
    },
    vocabulary::Category,
};

pub(super) const ALL: &[Detector] = &[
    health("us_mbi", "US Medicare beneficiary identifier", mbi)
        .alone(&["9AX9-AX9-AA99", "9AX9AX9AA99"])
        .named(&["9ax9-ax9-aa99", "9ax9ax9aa99"])
        .beside(&["mbi", "medicare", "beneficiary"])
        .fires(&["1EG4-TE5-MK73", "MBI 1EG4TE5MK73"])
        .passes(&["1EG4-ZE5-MK73", "1EG4TE5MK734", "0EG4-TE5-MK73"]),
    health("us_npi", "US national provider identifier, beside words that name it", npi)
        .named(&["9999999999"])
        .beside(&[
            "npi",
            "national provider",
            "provider id",
            "provider identifier",
            "provider number",
        ])
        .fires(&["NPI 1003000126", r#"{"npi": 1003000126}"#])
        .passes(&["1003000126", "NPI 1003000127"]),
    health("us_dea", "US drug enforcement registration, beside words that name it", dea)
        .named(&["AA9999999", "A99999999", "aa9999999"])
        .beside(&["dea", "dea number", "prescriber", "drug enforcement", "dea no"])
        .fires(&["DEA AB1234563"])
        .passes(&["AB1234563", "DEA AB1234564"]),
    health("us_medical_license", "US medical licence, beside words that name it", any_varied)
        .named(&[
            "A99999", "AA99999", "A9999", "99999", "999999", "MD999999", "MD99999", "AA999999",
            "A999999",
        ])
        .beside(&[
            "medical license",
            "medical licence",
            "physician license",
            "license to practice",
            "nursing license",
        ])
        .fires(&["medical license A12345"])
        .passes(&["A12345", "medical license revoked"]),
    health("medical_record_number", "Medical record number, beside words that name it", any_varied)
        .named(&[
            "999999",
            "9999999",
            "99999999",
            "999999999",
            "9999999999",
            "AA999999",
            "A9999999",
            "999-99-999",
            "99-99-99",
        ])
        .beside(&[
            "mrn",
            "medical record",
            "patient id",
            "patient number",
            "medical record number",
            "chart number",
        ])
        .fires(&["MRN 12345678", r#"{"patientId": "A1234567"}"#])
        .passes(&["12345678", "MRN unknown"]),
    health(
        "health_plan_number",
        "Health plan or policy number, beside words that name it",
        any_varied,
    )
    .named(&[
        "AAA999999999",
        "A99999999",
        "AA99999999",
        "999999999",
        "9999999999",
        "99999999999",
        "AAA999A99999",
        "A999999999",
    ])
    .beside(&[
        "member id",
        "subscriber id",
        "health plan",
        "health insurance",
        "insurance id",
        "policy number",
        "medicaid",
    ])
    .fires(&["member id XYZ123456789"])
    .passes(&["XYZ123456789", "member id pending"]),
    health("icd10_code", "ICD-10 code of a diagnosis, beside words that name it", icd)
        .named(&["A99.9", "A99.99", "A99", "A9X.9", "A99.999", "A99.9A", "A99.99A", "A99.999A"])
        .beside(&[
            "icd 10",
            "icd10",
            "icd code",
            "diagnosis",
            "diagnoses",
            "diagnosis code",
            "diagnose",
        ])
        .fires(&["diagnosis E11.9", r#"{"icd10": "F32.1"}"#])
        .passes(&["E11.9", "diagnosis pending"]),
    health("uk_nhs_number", "UK NHS number, beside words that name it", nhs)
        .named(&["999 999 9999", "9999999999", "999-999-9999"])
        .beside(&["nhs", "nhs number", "nhs no", "health service"])
        .fires(&["NHS number 791 805 8887", r#"{"nhsNumber": "6563551505"}"#])
        .passes(&["791 805 8887", "NHS number 791 805 8888"]),
    health(
        "de_health_insurance",
        "German health insurance number, in lower case beside words that name it",
        kvnr,
    )
    .alone(&["A999999999"])
    .named(&["A999999999", "a999999999"])
    .beside(&[
        "kvnr",
        "krankenversicherung",
        "krankenversichertennummer",
        "krankenkasse",
        "versichertennummer",
        "krankenversicherungsnummer",
        "egk",
        "gesundheitskarte",
    ])
    .fires(&["KVNR a123456780", "A123456780"])
    .passes(&["a123456780", "A123456781", "KVNR A123456781", "SKU-A123456780"]),
    health("de_lanr", "German doctor's number, beside words that name it", lanr)
        .named(&["999999999"])
        .beside(&["lanr", "arztnummer", "lebenslange arztnummer", "vertragsarzt"])
        .fires(&["LANR 123456601"])
        .passes(&["123456601", "LANR 123457601"]),
    health("de_bsnr", "German medical practice number, beside words that name it", any_varied)
        .named(&["999999999"])
        .beside(&["bsnr", "betriebsstättennummer", "betriebsstaettennummer", "betriebsstätte"])
        .fires(&["BSNR 021234568"])
        .passes(&["021234568"]),
    health("au_medicare", "Australian Medicare number, beside words that name it", medicare)
        .named(&["9999 99999 9", "9999999999", "9999-99999-9", "99999999999", "9999 99999 9 9"])
        .beside(&["medicare", "medicare card", "medicare number"])
        .fires(&["Medicare 2123 45670 1"])
        .passes(&["2123 45670 1", "Medicare 2123 45671 1"]),
    health("ca_health_card", "Canadian health card number, beside words that name it", any_varied)
        .named(&[
            "9999-999-999-AA",
            "9999-999-999",
            "9999 999 999",
            "9999999999",
            "999999999",
            "AAAA99999999",
            "AAAA 9999 9999",
        ])
        .beside(&[
            "ohip",
            "health card",
            "carte santé",
            "ramq",
            "personal health number",
            "provincial health",
            "assurance maladie",
        ])
        .fires(&["OHIP 1234-567-897-AB"])
        .passes(&["1234-567-897-AB"]),
    health("nz_nhi", "New Zealand health index number, beside words that name it", any)
        .named(&["AAA9999", "AAA99AX"])
        .beside(&["nhi", "national health index"])
        .fires(&["NHI ZAC5361"])
        .passes(&["ZAC5361"]),
    health("br_cns", "Brazilian health card number, beside words that name it", cns)
        .named(&["999999999999999", "999 9999 9999 9999"])
        .beside(&["cns", "cartão sus", "cartao sus", "cartão nacional de saúde"])
        .fires(&["CNS 700 0000 0000 0005"])
        .passes(&["700 0000 0000 0005", "CNS 700 0000 0000 0006"]),
    health("hu_taj", "Hungarian health insurance number, beside words that name it", taj)
        .named(&["999999999", "999 999 999", "999-999-999"])
        .beside(&["taj", "taj szám", "tajszám", "társadalombiztosítási"])
        .fires(&["TAJ 123 456 788"])
        .passes(&["123 456 788", "TAJ 123 456 789"]),
    health("in_abha", "Indian health account number, beside words that name it", any_varied)
        .named(&["99-9999-9999-9999", "99999999999999"])
        .beside(&["abha", "ayushman", "health id", "ndhm"])
        .fires(&["ABHA 91-1234-5678-9012"])
        .passes(&["91-1234-5678-9012"]),
];

/// A number that concerns a person's health.
const fn health(
    name: &'static str,
    description: &'static str,
    check: fn(&Candidate<'_>) -> Option<i32>,
) -> Detector {
    number(name, Category::Health, description, check)
}

fn any_varied(candidate: &Candidate<'_>) -> Option<i32> {
    varied(&candidate.digits()).then_some(0)
}

/// No letter that can be taken for a digit; the first digit is not zero.
fn mbi(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched().to_ascii_uppercase();
    let is_confusing = |byte: &u8| matches!(byte, b'S' | b'L' | b'O' | b'I' | b'B' | b'Z');
    (matched.first() != Some(&b'0') && !matched.iter().any(is_confusing)).then_some(4)
}

/// A Luhn digit over the number with the prefix of the United States and health care.
fn npi(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let whole: Vec<u8> = [8, 0, 8, 4, 0].into_iter().chain(digits.iter().copied()).collect();
    one_digit(matches!(at(&digits, 0), 1 | 2) && luhn(&whole))
}

fn dea(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let digits = digits.get(digits.len().checked_sub(7)?..)?;
    let sum = weighted(digits, &[1, 2, 1, 2, 1, 2]);
    one_digit(sum % 10 == at(digits, 6) && varied(digits))
}

/// A code with a point is more than a letter and two digits.
fn icd(candidate: &Candidate<'_>) -> Option<i32> {
    let is_used = candidate.matched().first()?.is_ascii_alphabetic();
    is_used.then_some(if candidate.matched().contains(&b'.') { 4 } else { 0 })
}

fn nhs(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let check = (11 - weighted(&digits, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11) % 11;
    one_digit(varied(&digits) && check == at(&digits, 9))
}

/// The letter counts as two digits; products of two digits are cross-summed.
fn kvnr(candidate: &Candidate<'_>) -> Option<i32> {
    let first = value(candidate.matched().first()?.to_ascii_uppercase()) - 9;
    let digits = candidate.digits();
    let all = [first / 10, first % 10].into_iter().chain(digits.iter().map(|d| u32::from(*d)));
    let products = all.take(10).zip([1, 2].iter().cycle()).map(|(digit, weight)| digit * weight);
    let sum: u32 = products.map(|product| product / 10 + product % 10).sum();
    one_digit(sum % 10 == at(&digits, 8))
}

/// Weights 4 and 9; the last two digits are the specialty.
fn lanr(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[4, 9, 4, 9, 4, 9]);
    one_digit((10 - sum % 10) % 10 == at(&digits, 6) && part(&digits, 0, 6) > 0)
}

fn medicare(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[1, 3, 7, 9, 1, 3, 7, 9]);
    one_digit(matches!(at(&digits, 0), 2..=6) && sum % 10 == at(&digits, 8))
}

/// Weights 15 to 1: the sum is divisible by eleven.
fn cns(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let weights: Vec<u32> = (1..=15).rev().collect();
    let is_kind = matches!(at(&digits, 0), 1 | 2 | 7..=9);
    two_digits(is_kind && weighted(&digits, &weights).is_multiple_of(11))
}

fn taj(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[3, 7, 3, 7, 3, 7, 3, 7]);
    one_digit(varied(&digits) && sum % 10 == at(&digits, 8))
}
