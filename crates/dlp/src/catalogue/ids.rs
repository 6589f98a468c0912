//! Numbers that states gave to persons and companies.

use crate::catalogue::detector::Detector;

mod americas;
mod asia;
mod balkans_baltics;
mod dach;
mod documents;
mod east;
mod east_asia;
mod further;
mod mistyped;
mod north;
mod south;
mod south_and_middle_east;
mod uk_ie;
mod us;
mod west;

pub(super) use crate::catalogue::ids::mistyped::NAME as MISTYPED_NUMBER;

/// By region.
pub(super) const ALL: &[&[Detector]] = &[
    documents::ALL,
    us::ALL,
    uk_ie::ALL,
    dach::ALL,
    west::ALL,
    south::ALL,
    east::ALL,
    balkans_baltics::ALL,
    north::ALL,
    asia::ALL,
    east_asia::ALL,
    south_and_middle_east::ALL,
    americas::ALL,
    further::ALL,
    mistyped::ALL,
];
