//! Numbers of persons in India, Pakistan and South-East Asia.

use crate::catalogue::{
    builders::{SERIALS, any, national},
    checks::{at, is_short_date, one_digit, part, value, varied, verhoeff, weighted},
    detector::{Candidate, Detector},
};

pub(super) const ALL: &[Detector] = &[
    national("in_aadhaar", "Indian Aadhaar number", aadhaar)
        .alone(&["9999 9999 9999", "9999-9999-9999"])
        .named(&["999999999999"])
        .beside(&["aadhaar", "aadhar", "adhaar", "uidai", "आधार"])
        .not_below(SERIALS)
        .fires(&["6433 2275 4545", r#"{"aadhaarNumber": "825452715003"}"#])
        .passes(&["6433 2275 4546", "643322754545", "0433 2275 4545", "6433 2275 4545 1234"]),
    national("in_pan", "Indian permanent account number, beside words that name it", pan)
        .named(&["AAAAA9999A", "aaaaa9999a"])
        .beside(&["pan", "permanent account", "pan card", "income tax"])
        .fires(&["PAN HVRPR5248T", r#"{"panNumber": "svcpk1710u"}"#])
        .passes(&["HVRPR5248T", "PAN HVRXR5248T"]),
    national("in_gstin", "Indian goods and services tax number", gstin)
        .alone(&["99AAAAA9999AXAX"])
        .beside(&["gstin", "gst", "goods and services"])
        .fires(&["27YMPPA3062N1Z4", "GSTIN 27FTPPF0817M1Z9"])
        .passes(&["27YMPPA3062N1Z5", "99YMPPA3062N1Z4"]),
    national("in_voter_id", "Indian voter identity number, beside words that name it", any)
        .named(&["AAA9999999", "aaa9999999"])
        .beside(&["voter", "epic", "election", "voter id", "electors photo"])
        .fires(&["voter id NBC2289726"])
        .passes(&["NBC2289726"]),
    national("in_passport", "Indian passport number, beside words that name it", any)
        .named(&["A9999999", "A9 99999", "a9999999"])
        .beside(&["passport"])
        .fires(&["Indian passport A3456781"])
        .passes(&["A3456781"]),
    national("in_driving_licence", "Indian driving licence number, beside words that name it", any)
        .named(&["AA9999999999999", "AA99 99999999999", "AA-9999999999999", "AA99-99999999999"])
        .beside(&["driving licence", "driving license", "dl no", "dl number", "licence number"])
        .fires(&["driving licence MH1420110012345"])
        .passes(&["MH1420110012345"]),
    national(
        "in_vehicle_registration",
        "Indian vehicle registration, beside words that name it",
        any,
    )
    .named(&["AA99AA9999", "AA 99 AA 9999", "AA-99-AA-9999", "AA99A9999", "AA9AA9999"])
    .beside(&[
        "vehicle registration",
        "registration number",
        "rc number",
        "vehicle number",
        "number plate",
        "vehicle",
    ])
    .fires(&["vehicle number GJ09AB1234"])
    .passes(&["GJ09AB1234"]),
    national("pk_cnic", "Pakistani identity card number", cnic)
        .alone(&["99999-9999999-9"])
        .named(&["9999999999999"])
        .beside(&["cnic", "nadra", "nicop"])
        .fires(&["42201-4265713-9", r#"{"cnic": "4220121149881"}"#])
        .passes(&["02201-4265713-9", "4220142657139"]),
    national("sg_nric", "Singaporean NRIC or FIN", nric)
        .alone(&["A9999999A"])
        .named(&["a9999999a"])
        .beside(&["nric", "fin", "identity card", "singpass"])
        .not_below(SERIALS)
        .fires(&["NRIC S2740116C was processed", "S2740116C"])
        .passes(&["S2740116D", "X2740116C", "S274011C"]),
    national("sg_uen", "Singaporean business number", uen)
        .alone(&["999999999A"])
        .named(&["99999999A", "T99AA9999A", "S99AA9999A"])
        .beside(&["uen", "unique entity", "acra"])
        .fires(&["201496888E", "UEN T09LL0001B"])
        .passes(&["201496888F", "301496888E", "T09LL0001B"]),
    national("my_mykad", "Malaysian identity card number", mykad)
        .alone(&["999999-99-9999"])
        .named(&["999999999999", "999999 99 9999"])
        .beside(&["mykad", "nric", "kad pengenalan", "ic number", "no kp", "ic no"])
        .not_below(SERIALS)
        .fires(&["840315-01-9583", r#"{"mykad": "840315142803"}"#])
        .passes(&["841315-01-9583", "840315019583", "840315-00-9583"]),
    national("th_national_id", "Thai national identity number", thai)
        .alone(&["9-9999-99999-99-9", "9 9999 99999 99 9"])
        .named(&["9999999999999"])
        .beside(&[
            "tnin",
            "thai id",
            "national id",
            "บัตรประชาชน",
            "เลขประจำตัวประชาชน",
            "citizen id",
        ])
        .fires(&["8-2620-52227-72-9", r#"{"nationalId": "1344368647641"}"#])
        .passes(&["8-2620-52227-72-8", "8262052227729"]),
    national("id_nik", "Indonesian resident number, beside words that name it", nik)
        .named(&["9999999999999999"])
        .beside(&["nik", "ktp", "nomor induk kependudukan"])
        .fires(&["NIK 3171011503847486"])
        .passes(&["3171011503847486", "NIK 3171011513847486"]),
    national("ph_tin", "Philippine tax number, beside words that name it", any)
        .named(&["999-999-999-999", "999-999-999", "999-999-999-99999", "999999999999"])
        .beside(&["tin", "philippine tax", "bir"])
        .fires(&["My TIN is 123-456-789-000"])
        .passes(&["123-456-789-000"]),
    national("ph_umid", "Philippine UMID or PhilSys number, beside words that name it", any)
        .named(&["9999-9999999-9", "9999-9999-9999-9999", "99-9999999-9"])
        .beside(&["umid", "crn", "philsys", "psn", "sss", "gsis"])
        .fires(&["UMID 0111-1234567-8"])
        .passes(&["0111-1234567-8"]),
    national("vn_cccd", "Vietnamese citizen number, beside words that name it", any)
        .named(&["999999999999", "999999999"])
        .beside(&["cccd", "cmnd", "căn cước", "can cuoc", "chứng minh nhân dân"])
        .fires(&["CCCD 001099012345"])
        .passes(&["001099012345"]),
];

fn aadhaar(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    one_digit(at(&digits, 0) >= 2 && varied(&digits) && verhoeff(&digits))
}

/// The fourth letter tells the kind of holder.
fn pan(candidate: &Candidate<'_>) -> Option<i32> {
    let kind = candidate.matched().get(3)?.to_ascii_uppercase();
    b"PCHABGJLFTE".contains(&kind).then_some(4)
}

/// State, PAN, entity, and a check character by a Luhn scheme with base 36.
fn gstin(candidate: &Candidate<'_>) -> Option<i32> {
    let (last, rest) = candidate.matched().split_last()?;
    let state = part(&candidate.digits(), 0, 2);
    let products = rest.iter().enumerate().map(|(at, byte)| {
        let product = value(*byte) * if at % 2 == 0 { 1 } else { 2 };
        product / 36 + product % 36
    });
    let check = (36 - products.sum::<u32>() % 36) % 36;
    // The last but one is `Z`, or tells who deducts or collects taxes.
    let is_state = matches!(state, 1..=38 | 97)
        && matches!(candidate.matched().get(13), Some(b'Z' | b'C' | b'D'));
    is_state.then_some(if check == value(*last) { 12 } else { -4 })
}

/// Province and division, family, sex.
fn cnic(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    (matches!(at(&digits, 0), 1..=7) && at(&digits, 12) > 0 && varied(&digits)).then_some(4)
}

/// The letters after the digits depend on the first one, and so does where counting begins.
fn nric(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched().to_ascii_uppercase();
    let (offset, letters): (u32, &[u8]) = match matched.first()? {
        b'S' => (0, b"JZIHGFEDCBA"),
        b'T' => (4, b"JZIHGFEDCBA"),
        b'F' => (0, b"XWUTRQPNMLK"),
        b'G' => (4, b"XWUTRQPNMLK"),
        b'M' => (3, b"KLJNPQRTUWX"),
        _ => return None,
    };
    let sum = weighted(&candidate.digits(), &[2, 7, 6, 5, 4, 3, 2]) + offset;
    let place = if matched.first() == Some(&b'M') { 10 - sum % 11 } else { sum % 11 };
    (letters.get(usize::try_from(place).ok()?) == matched.last()).then_some(6)
}

/// A company's number begins with its year and ends with a check letter.
fn uen(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    if !matched.get(..9)?.iter().all(u8::is_ascii_digit) {
        return Some(0);
    }
    let digits = candidate.digits();
    let sum = weighted(&digits, &[10, 8, 6, 4, 9, 7, 5, 3, 1]);
    let letter = b"ZKCMDNERGWH".get(usize::try_from(sum % 11).ok()?);
    (matches!(part(&digits, 0, 4), 1900..=2099) && letter == matched.last()).then_some(6)
}

/// Born, and in a state or country that has a code.
fn mykad(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 0, 2), part(&digits, 2, 4), part(&digits, 4, 6));
    let is_place = !matches!(part(&digits, 6, 8), 0 | 17..=20 | 69 | 70 | 73 | 80 | 81 | 94..=97);
    (is_born && is_place).then_some(6)
}

fn thai(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2]);
    one_digit(at(&digits, 0) != 0 && (11 - sum % 11) % 10 == at(&digits, 12))
}

/// Region, date of birth with 40 added to women's days, serial.
fn nik(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born =
        is_short_date(part(&digits, 10, 12), part(&digits, 8, 10), part(&digits, 6, 8) % 40);
    (is_born && matches!(part(&digits, 0, 2), 11..=94)).then_some(4)
}
