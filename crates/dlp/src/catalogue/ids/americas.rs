//! Numbers of persons in Canada and Latin America.

use crate::catalogue::{
    builders::{SERIALS, any, national},
    checks::{at, is_short_date, luhn, one_digit, part, two_digits, value, varied, weighted},
    detector::{Candidate, Detector},
};

pub(super) const ALL: &[Detector] = &[
    national("ca_sin", "Canadian social insurance number", sin)
        .alone(&["999-999-999"])
        .named(&["999999999", "999 999 999"])
        .beside(&[
            "sin",
            "social insurance",
            "numéro d'assurance sociale",
            "nas",
            "assurance sociale",
        ])
        .not_below(SERIALS)
        .fires(&["435-383-344", "SIN 600 116 297", r#"{"sin": "900985169"}"#])
        .passes(&["435-383-345", "435383344", "046 454 286", "111-111-111"]),
    national("ca_passport", "Canadian passport number, beside words that name it", any)
        .named(&["AA999999", "A999999AA"])
        .beside(&["passport", "passeport"])
        .fires(&["Canadian passport GA123456"])
        .passes(&["GA123456"]),
    national("br_cpf", "Brazilian taxpayer number of a person", cpf)
        .alone(&["999.999.999-99"])
        .named(&["99999999999", "999999999-99"])
        .beside(&["cpf", "cadastro de pessoas"])
        .fires(&["882.916.881-50", r#"{"cpf": "82578567972"}"#])
        .passes(&["882.916.881-51", "88291688150", "111.111.111-11"]),
    national("br_cnpj", "Brazilian company number", cnpj)
        .alone(&["99.999.999/9999-99", "XX.XXX.XXX/XXXX-99"])
        .named(&["99999999999999", "XX.XXX.XXX/XXXX-99", "XXXXXXXXXXXX99"])
        .beside(&["cnpj"])
        .fires(&[
            "45.557.030/0001-31",
            r#"{"cnpj": "14859434000156"}"#,
            "12.ABC.345/01DE-35",
            "CNPJ 12ABC34501DE35",
        ])
        .passes(&["45.557.030/0001-32", "45557030000131", "12.ABC.345/01DE-36"]),
    national("br_rg", "Brazilian identity card number, beside words that name it", any)
        .named(&["99.999.999-X", "99999999X", "9.999.999"])
        .beside(&["registro geral", "carteira de identidade"])
        .fires(&["registro geral 12.345.678-9"])
        .passes(&["12.345.678-9"]),
    national("ar_cuit", "Argentine tax or labour number", cuit)
        .alone(&["99-99999999-9"])
        .named(&["99999999999"])
        .beside(&["cuit", "cuil", "cdi"])
        .fires(&["20-74879785-9", r#"{"cuil": "20652398783"}"#])
        .passes(&["20-74879785-8", "20748797859", "40-74879785-9"]),
    national("ar_dni", "Argentine identity number, beside words that name it", any)
        .named(&["99.999.999", "99999999"])
        .beside(&["dni", "documento nacional de identidad"])
        .fires(&["DNI 30.123.456"])
        .passes(&["30.123.456"]),
    national("cl_rut", "Chilean tax and identity number", rut)
        .alone(&["99.999.999-X", "9.999.999-X", "99.999.999-k"])
        .named(&["99999999-x", "9999999-x", "99999999x"])
        .beside(&["rut", "rol único", "rol unico"])
        .fires(&["39.588.921-4", r#"{"rut": "24246970-4"}"#])
        .passes(&["39.588.921-5", "24246970-4"]),
    national("mx_curp", "Mexican population registry code", curp)
        .alone(&["AAAA999999AAAAAAXX"])
        .named(&["aaaa999999aaaaaaxx"])
        .beside(&["curp", "clave única", "clave unica"])
        .fires(&["GOMC840315HDFLRR05"])
        .passes(&["GOMC840315HDFLRR06", "GOMC841315HDFLRR05", "GOMC840315XDFLRR05"]),
    national("mx_rfc", "Mexican taxpayer registry code", rfc)
        .alone(&["AAAA999999XXX"])
        .named(&["AAA999999XXX", "aaaa999999xxx"])
        .beside(&["rfc", "registro federal", "contribuyentes"])
        .fires(&["GOMC840315UXA", "RFC GOMC840315GH7"])
        .passes(&["GOMC840315UX1", "GOMC841315UXA"]),
    national("mx_nss", "Mexican social security number, beside words that name it", nss)
        .named(&["99999999999", "99-99-99-9999-9"])
        .beside(&["nss", "imss", "seguridad social"])
        .fires(&["NSS 12345678903"])
        .passes(&["12345678903", "NSS 12345678902"]),
    national("co_nit", "Colombian tax or citizenship number, beside words that name it", colombia)
        .named(&[
            "999.999.999-9",
            "999999999-9",
            "9999999999",
            "9.999.999.999",
            "99.999.999",
            "99.999.999-9",
        ])
        .beside(&["nit", "cédula", "cedula", "cedula de ciudadania", "cédula de ciudadanía"])
        .fires(&["NIT 163.696.463-5", "cédula 1.020.304.050"])
        .passes(&["163.696.463-5", "NIT 163.696.463-4"]),
    national("pe_ruc", "Peruvian taxpayer number, beside words that name it", ruc)
        .named(&["99999999999"])
        .beside(&["ruc", "registro único de contribuyentes", "sunat"])
        .fires(&["RUC 20993818471"])
        .passes(&["20993818471", "RUC 20993818472"]),
    national("pe_dni", "Peruvian identity number, beside words that name it", any)
        .named(&["99999999-9", "99999999"])
        .beside(&["dni peru", "reniec", "dni peruano"])
        .fires(&["RENIEC 12345678"])
        .passes(&["12345678"]),
    national("ec_cedula", "Ecuadorian identity number, beside words that name it", ecuador)
        .named(&["9999999999", "999999999-9"])
        .beside(&["cédula", "cedula", "cédula de identidad"])
        .fires(&["cédula 170343956-0"])
        .passes(&["170343956-0", "cédula 170343956-1"]),
    national("do_cedula", "Dominican identity number", dominican)
        .alone(&["999-9999999-9"])
        .named(&["99999999999"])
        .beside(&["cédula", "cedula"])
        .fires(&["454-5779402-7"])
        .passes(&["454-5779402-8", "45457794027"]),
    national("ve_rif", "Venezuelan tax number", rif)
        .alone(&["A-99999999-9"])
        .named(&["A999999999"])
        .beside(&["rif", "seniat"])
        .fires(&["V-03195616-8", "RIF V592104594"])
        .passes(&["V-03195616-9", "V031956168"]),
];

/// Numbers do not begin with zero or eight.
fn sin(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    one_digit(!matches!(at(&digits, 0), 0 | 8) && varied(&digits) && luhn(&digits))
}

/// Two check digits, each by a remainder by eleven.
fn cpf(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let first = weighted(&digits, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) * 10 % 11 % 10;
    let second = weighted(&digits, &[11, 10, 9, 8, 7, 6, 5, 4, 3, 2]) * 10 % 11 % 10;
    two_digits(varied(&digits) && first == at(&digits, 9) && second == at(&digits, 10))
}

/// Since 2026 the first twelve may be letters, which count from 17.
fn cnpj(candidate: &Candidate<'_>) -> Option<i32> {
    let alnum = candidate.matched().iter().filter(|byte| byte.is_ascii_alphanumeric());
    let values: Vec<u8> = alnum.map(|byte| byte.wrapping_sub(b'0')).collect();
    let check = |weights: &[u32]| match weighted(&values, weights) % 11 {
        0 | 1 => 0,
        rest => 11 - rest,
    };
    let first = check(&[5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2]);
    let second = check(&[6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2]);
    two_digits(varied(&values) && first == at(&values, 12) && second == at(&values, 13))
}

fn cuit(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]);
    let check = match 11 - sum % 11 {
        11 => 0,
        10 => 9,
        check => check,
    };
    let is_kind = matches!(part(&digits, 0, 2), 20 | 23..=27 | 30 | 33 | 34 | 50 | 51 | 55);
    (is_kind && check == at(&digits, 10)).then_some(6)
}

/// Weights 2 to 7 from the right; ten is written `K`.
fn rut(candidate: &Candidate<'_>) -> Option<i32> {
    let alnum: Vec<u8> =
        candidate.matched().iter().filter(|b| b.is_ascii_alphanumeric()).copied().collect();
    let (check, rest) = alnum.split_last()?;
    let weights = [2, 3, 4, 5, 6, 7].iter().cycle();
    let sum: u32 = rest.iter().rev().zip(weights).map(|(byte, weight)| value(*byte) * weight).sum();
    let expected = match 11 - sum % 11 {
        11 => b'0',
        10 => b'K',
        digit => b'0' + u8::try_from(digit).ok()?,
    };
    // A number of one digit alone stands for any, but belongs to somebody all the same.
    (check.to_ascii_uppercase() == expected).then(|| if varied(rest) { 5 } else { -4 })
}

/// Name, date of birth, sex, state, and a digit that checks all of it.
fn curp(candidate: &Candidate<'_>) -> Option<i32> {
    // `Ñ` would stand between `N` and `O`: letters after it count one more.
    let matched = candidate.matched().to_ascii_uppercase();
    let place = |byte: u8| value(byte) + u32::from(byte > b'N' && byte.is_ascii_alphabetic());
    let sum: u32 = matched.iter().zip((2..=18).rev()).map(|(byte, w)| place(*byte) * w).sum();
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 0, 2), part(&digits, 2, 4), part(&digits, 4, 6));
    let is_sex =
        matches!(matched.get(10), Some(b'H' | b'M' | b'X')) && matched.get(11) != Some(&b'X');
    let is_right = (10 - sum % 10) % 10 == value(*matched.last()?);
    (is_born && is_sex && is_right).then_some(12)
}

/// Name, date of birth, and a check character that not every office computes.
fn rfc(candidate: &Candidate<'_>) -> Option<i32> {
    const ORDER: &[u8; 38] = b"0123456789ABCDEFGHIJKLMN&OPQRSTUVWXYZ ";
    let matched = candidate.matched().to_ascii_uppercase();
    let digits: Vec<u8> = matched
        .iter()
        .skip(matched.len().checked_sub(9)?)
        .take(6)
        .map(|b| b.wrapping_sub(b'0'))
        .collect();
    let is_born = is_short_date(part(&digits, 0, 2), part(&digits, 2, 4), part(&digits, 4, 6));
    // A company's code has one letter less and a space before it.
    let padded: Vec<u8> =
        std::iter::repeat_n(b' ', 13_usize.checked_sub(matched.len())?).chain(matched).collect();
    let places =
        padded.iter().map(|byte| ORDER.iter().position(|known| known == byte).unwrap_or(0));
    let sum: usize = places.zip((2..=13).rev()).map(|(place, weight)| place * weight).sum();
    let expected = match 11 - sum % 11 {
        11 => b'0',
        10 => b'A',
        digit => b'0' + u8::try_from(digit).ok()?,
    };
    let bits = if padded.last() == Some(&expected) { 8 } else { -2 };
    is_born.then_some(bits)
}

fn nss(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    one_digit(varied(&digits) && luhn(&digits))
}

/// A tax number has a check digit, a citizenship number has none.
fn colombia(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    if !candidate.matched().contains(&b'-') {
        return varied(&digits).then_some(0);
    }
    let (check, rest) = digits.split_last()?;
    let weights = [3, 7, 13, 17, 19, 23, 29, 37, 41, 43];
    let sum: u32 = rest.iter().rev().zip(weights).map(|(digit, w)| u32::from(*digit) * w).sum();
    let expected = match sum % 11 {
        rest @ (0 | 1) => rest,
        rest => 11 - rest,
    };
    one_digit(expected == u32::from(*check))
}

fn ruc(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]);
    let is_kind = matches!(part(&digits, 0, 2), 10 | 15 | 17 | 20);
    one_digit(is_kind && (11 - sum % 11) % 10 == at(&digits, 10))
}

/// Province, kind, serial, Luhn.
fn ecuador(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_province = matches!(part(&digits, 0, 2), 1..=24 | 30);
    one_digit(is_province && at(&digits, 2) < 6 && luhn(&digits))
}

fn dominican(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    two_digits(varied(&digits) && luhn(&digits))
}

fn rif(candidate: &Candidate<'_>) -> Option<i32> {
    let kind = match candidate.matched().first()? {
        b'V' => 4,
        b'E' => 8,
        b'J' => 12,
        b'P' => 16,
        b'G' => 20,
        _ => return None,
    };
    let digits = candidate.digits();
    let sum = kind + weighted(&digits, &[3, 2, 7, 6, 5, 4, 3, 2]);
    let check = match 11 - sum % 11 {
        10 | 11 => 0,
        check => check,
    };
    (check == at(&digits, 8)).then_some(6)
}
