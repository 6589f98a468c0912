//! Trust: tests.
