//! Servers for the tests of riops: never part of a release.
