//! The functions that entries of the catalogue name: checks of a match, and what finds one.

use std::ops::Range;

use crate::{
    catalogue::{
        checks::{any, any_varied},
        contact::{self, phones},
        detector::Candidate,
        financial::{accounts, cards, coins, iban, lone_cards},
        health,
        ids::{
            americas, asia, balkans_baltics, dach, documents, east, east_asia, further, north,
            south, south_and_middle_east, uk_ie, us, west,
        },
        injection::{links, overrides, poison, requests, roles, steering, veiled},
        network,
        secrets::{
            ai, assigned, aws, chat, compared, general, keys,
            passwords::{self, assignments},
            published, randomness, services, statements, summed,
        },
    },
    text::{digits::DigitRun, window::Window},
};

type Check = fn(&Candidate<'_>) -> Option<i32>;
type FindAt = fn(&Window<'_>, usize) -> Option<Range<usize>>;
type FindDigits = fn(&Window<'_>, &DigitRun) -> Vec<Range<usize>>;
type FindPart = fn(&Window<'_>, Range<usize>) -> Option<Range<usize>>;

macro_rules! functions {
    ($($path:path)*) => { &[$((stringify!($path), $path)),*] };
}

pub(super) const CHECKS: &[(&str, Check)] = functions! {
    randomness::random assigned::assigned randomness::random_with_digits any accounts::aba
    accounts::bic accounts::ccc accounts::clabe accounts::us_account accounts::vat
    ai::unlike_openai americas::cnpj americas::colombia americas::cpf americas::cuit
    americas::curp americas::dominican americas::ecuador americas::nss americas::rfc americas::rif
    americas::ruc americas::rut americas::sin any_varied asia::aadhaar asia::cnic asia::gstin
    asia::mykad asia::nik asia::nric asia::pan asia::thai asia::uen aws::access_key_id
    aws::secret_access_key balkans_baltics::baltic balkans_baltics::inn balkans_baltics::jmbg
    balkans_baltics::kazakhstan balkans_baltics::latvia balkans_baltics::oib
    balkans_baltics::slovenia balkans_baltics::snils balkans_baltics::ukraine cards::card
    cards::named cards::security_code cards::track coins::bitcoin coins::ethereum
    coins::extended_key coins::other_coin coins::phrase coins::segwit coins::wallet_key
    compared::code_secret dach::ahv dach::any_varied dach::austria dach::card_line dach::document
    dach::pension dach::tax_id documents::birth documents::mrz east::birth_number east::cnp
    east::egn east::hungary_person east::hungary_tax east::nip east::pesel east::polish_card
    east::regon east_asia::brn east_asia::hkid east_asia::japanese_licence
    east_asia::korean_licence east_asia::my_number east_asia::resident east_asia::rrn
    east_asia::taiwan further::cbu further::citizen_card further::cuba further::ico further::iran
    further::kuwait further::lanka further::macedonia further::mauritius further::morocco
    further::romania further::uruguay general::odd general::secret health::cns health::dea
    health::icd health::kvnr health::lanr health::mbi health::medicare health::nhs health::npi
    health::taj iban::iban keys::basic keys::bearer keys::docker_auth keys::jwt keys::password
    keys::private_key keys::private_member keys::user_password links::check lone_cards::card
    network::iccid network::imei network::ipv4 network::ipv6 network::ipv6_full network::mac
    network::mac_with_colons north::cpr north::hetu north::kennitala north::norway
    north::norway_org north::orgnr north::personnummer north::y_tunnus overrides::check
    passwords::password phones::dialled phones::grouped phones::has_country
    phones::north_american poison::check published::unpublished randomness::clear
    randomness::random_behind_row randomness::random_letters randomness::random_with_letters
    requests::check roles::check services::service_key south::affiliation south::afm south::amka
    south::cif south::codice_fiscale south::dni south::nie south::piva south::portugal
    south_and_middle_east::abn south_and_middle_east::acn south_and_middle_east::egypt
    south_and_middle_east::emirates south_and_middle_east::ird south_and_middle_east::israel
    south_and_middle_east::saudi south_and_middle_east::south_africa south_and_middle_east::tfn
    south_and_middle_east::turkey statements::given statements::mixed statements::option
    statements::session statements::without_lines steering::check summed::github summed::gitlab
    summed::grafana summed::npm summed::portcullis uk_ie::licence uk_ie::nino uk_ie::pps uk_ie::utr us::ein us::itin
    us::license us::ssn veiled::check west::belgium west::bsn west::french_tax west::luxembourg
    west::nir west::siret
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

/// The function of that name.
pub(super) fn named<T: Copy>(known: &[(&str, T)], name: &str) -> Result<T, String> {
    let found = known.iter().find(|(own, _)| *own == name);
    found.map(|(_, function)| *function).ok_or_else(|| format!("there is no function `{name}`"))
}
