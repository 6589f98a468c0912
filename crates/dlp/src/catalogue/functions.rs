//! The functions that entries of the catalogue name: checks of a match, and what finds one.

use crate::catalogue::{
    checks::varied,
    contact::{self, phones},
    detector::{Candidate, CheckFunction, FindAt, FindDigits, FindPart},
    financial::{accounts, cards, coins, iban, lone_cards},
    health,
    ids::{americas, asia, documents, europe},
    injection::{links, overrides, poison, requests, roles, steering, veiled},
    network,
    secrets::{
        ai, assigned, aws, chat, compared, general, keys,
        passwords::{self, assignments},
        published, randomness, services, statements, summed,
    },
};

macro_rules! functions {
    ($($path:path)*) => { &[$((stringify!($path), $path)),*] };
}

pub(super) const CHECKS: &[(&str, CheckFunction)] = functions! {
    randomness::random assigned::assigned randomness::random_with_digits any accounts::aba
    accounts::bic accounts::us_account accounts::vat ai::unlike_openai americas::cnpj
    americas::colombia americas::curp americas::license americas::rfc americas::rif americas::rut
    americas::ssn any_varied asia::brn asia::egypt asia::gstin asia::hkid asia::nric asia::pan
    asia::resident asia::taiwan asia::uen asia::vkn aws::access_key_id aws::secret_access_key
    cards::card cards::named cards::security_code cards::track coins::bitcoin coins::ethereum
    coins::extended_key coins::other_coin coins::phrase coins::segwit coins::wallet_key
    compared::code_secret documents::birth documents::citizen_card documents::lanka
    documents::macedonia documents::mauritius documents::morocco documents::mrz documents::romania
    documents::uruguay europe::affiliation europe::any_varied europe::belgium europe::birth_number
    europe::card_line europe::cif europe::codice_fiscale europe::dni europe::document
    europe::french_tax europe::hetu europe::hungary_person europe::latvia europe::licence
    europe::luxembourg europe::nie europe::nino europe::nir europe::orgnr europe::pension
    europe::personnummer europe::polish_card europe::pps europe::siret europe::snils
    europe::tax_id general::odd general::secret health::dea health::icd health::kvnr health::mbi
    health::npi iban::iban keys::basic keys::bearer keys::docker_auth keys::jwt keys::password
    keys::private_key keys::private_member keys::user_password links::check lone_cards::card
    network::imei network::ipv4 network::ipv6 network::ipv6_full network::mac
    network::mac_with_colons overrides::check passwords::password phones::dialled phones::grouped
    phones::has_country phones::north_american poison::check published::unpublished
    randomness::clear randomness::random_behind_row randomness::random_letters
    randomness::random_with_letters requests::check roles::check services::service_key
    statements::given statements::mixed statements::option statements::session
    statements::without_lines steering::check summed::github summed::gitlab summed::grafana
    summed::npm summed::portcullis veiled::check
};

pub(super) const AT: &[(&str, FindAt)] = functions! { contact::email keys::url_password };

pub(super) const DIGITS: &[(&str, FindDigits)] = functions! {
    cards::cards chat::app_token iban::ibans lone_cards::lone_numbers network::dotted
    phones::international
};

pub(super) const PARTS: &[(&str, FindPart)] = functions! {
    assignments::find chat::bot_token coins::whole compared::compared keys::nothing links::find
    network::shortened overrides::find poison::whole requests::find roles::find steering::find
    veiled::find
};

/// Nothing but the layout speaks for a match.
#[expect(clippy::unnecessary_wraps, reason = "other checks can say no")]
fn any(_: &Candidate<'_>) -> Option<i32> {
    Some(0)
}

/// The same of a number with more than one digit.
fn any_varied(candidate: &Candidate<'_>) -> Option<i32> {
    varied(&candidate.digits()).then_some(0)
}

/// The function of that name.
pub(super) fn named<T: Copy>(known: &[(&str, T)], name: &str) -> Result<T, String> {
    let found = known.iter().find(|(own, _)| *own == name);
    found.map(|(_, function)| *function).ok_or_else(|| format!("there is no function `{name}`"))
}
