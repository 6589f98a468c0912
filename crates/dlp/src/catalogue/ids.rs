//! Numbers that states gave to persons and companies.

pub(super) mod americas;
pub(super) mod asia;
pub(super) mod balkans_baltics;
pub(super) mod dach;
pub(super) mod documents;
pub(super) mod east;
pub(super) mod east_asia;
pub(super) mod further;
pub(super) mod north;
pub(super) mod south;
pub(super) mod south_and_middle_east;
pub(super) mod uk_ie;
pub(super) mod us;
pub(super) mod west;
