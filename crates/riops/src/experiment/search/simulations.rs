//! Simulated searches. docs/statistics.md quotes the printed rates.
