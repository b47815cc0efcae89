//! The options of sysbench: names, values and defaults. The names have underscores; sysbench also accepts dashes.

/// The values that an option accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A whole number; a negative one means the same as 0.
    Number,
    /// A whole number that is not negative.
    Rate,
    /// Any text.
    Text,
    /// `on` or `off`; without a value, `on`.
    Switch,
    /// One of these texts.
    OneOf(&'static [&'static str]),
}

/// What riops does with an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// It has the same name and meaning in `riops run oltp`.
    Run,
    /// The same in `riops prepare oltp`.
    Prepare,
    /// The same in both.
    Both,
    /// It is translated.
    Translated,
    /// It has no meaning for riops: accepted with a notice.
    Ignored(&'static str),
    /// It would change the measurement in a way that riops does not support.
    Refused(&'static str),
}

/// An option: its name, values, default, what riops does with it, and its meaning.
pub(super) type Known = (&'static str, Kind, &'static str, Use, &'static str);

/// sysbench's other names for its options.
pub(super) const ALIASES: [(&str, &str); 4] = [
    ("num_threads", "threads"),
    ("max_requests", "events"),
    ("max_time", "time"),
    ("tx_rate", "rate"),
];

const ALWAYS: &str = "riops always checks the replies";
const NO_LOG: &str = "riops has no such log";

/// The options of every test.
#[rustfmt::skip]
pub(super) const GENERAL: &[Known] = &[
    ("threads", Kind::Number, "1", Use::Translated, "number of sessions"),
    ("events", Kind::Number, "0", Use::Translated, "stop after this number of transactions; 0: no limit"),
    ("time", Kind::Number, "10", Use::Translated, "stop after this time, in seconds; 0: no limit"),
    ("warmup_time", Kind::Number, "0", Use::Translated, "run before measuring, in seconds"),
    ("thread_init_timeout", Kind::Number, "30", Use::Translated, "time for connecting all sessions, in seconds"),
    ("forced_shutdown", Kind::Text, "off", Use::Translated, "seconds to wait for transactions in flight at the end"),
    ("thread_stack_size", Kind::Text, "64K", Use::Ignored("riops does not use one thread per session"), "no meaning"),
    ("rate", Kind::Rate, "0", Use::Translated, "transactions per second; 0: no limit"),
    ("report_interval", Kind::Number, "0", Use::Translated, "interval of the reports, in seconds; 0: none"),
    ("report_checkpoints", Kind::Text, "", Use::Translated, "times of full reports, in seconds"),
    ("debug", Kind::Switch, "off", Use::Ignored(NO_LOG), "no meaning"),
    ("validate", Kind::Switch, "off", Use::Ignored(ALWAYS), "no meaning: replies are always checked"),
    ("help", Kind::Switch, "off", Use::Translated, "print this text"),
    ("version", Kind::Switch, "off", Use::Translated, "print the version"),
    ("config_file", Kind::Text, "", Use::Translated, "file with options"),
    ("test", Kind::Text, "", Use::Translated, "name of the test"),
    ("rand_type", Kind::OneOf(&["uniform", "gaussian", "special", "pareto", "zipfian"]), "special", Use::Translated, "distribution of ids and of k"),
    ("rand_spec_iter", Kind::Number, "12", Use::Translated, "random numbers per mean (special, gaussian)"),
    ("rand_spec_pct", Kind::Number, "1", Use::Translated, "percentage of special values"),
    ("rand_spec_res", Kind::Number, "75", Use::Translated, "percentage of accesses to them"),
    ("rand_seed", Kind::Number, "0", Use::Translated, "random seed; 0: from the operating system"),
    ("rand_pareto_h", Kind::Text, "0.2", Use::Translated, "parameter h of pareto"),
    ("rand_zipfian_exp", Kind::Text, "0.8", Use::Translated, "exponent of zipfian"),
    ("luajit_cmd", Kind::Text, "", Use::Ignored("riops has no Lua"), "no meaning"),
    ("verbosity", Kind::OneOf(&["0", "1", "2", "3", "4", "5"]), "3", Use::Translated, "below 3: no report"),
    ("percentile", Kind::Number, "95", Use::Translated, "latency percentile; 0: none"),
    ("histogram", Kind::Switch, "off", Use::Translated, "print a latency histogram"),
    ("db_driver", Kind::Text, "pgsql", Use::Translated, "only pgsql"),
    ("db_ps_mode", Kind::OneOf(&["auto", "disable"]), "auto", Use::Translated, "disable: no prepared statements"),
    ("db_debug", Kind::Switch, "off", Use::Ignored(NO_LOG), "no meaning"),
    ("pgsql_host", Kind::Text, "localhost", Use::Translated, "host of the server"),
    ("pgsql_port", Kind::Number, "5432", Use::Translated, "port of the server"),
    ("pgsql_user", Kind::Text, "sbtest", Use::Translated, "user"),
    ("pgsql_password", Kind::Text, "", Use::Translated, "password"),
    ("pgsql_db", Kind::Text, "sbtest", Use::Translated, "database"),
    ("pgsql_sslmode", Kind::OneOf(&["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]), "prefer", Use::Translated, "whether connections use TLS"),
];

/// The options of the OLTP tests.
#[rustfmt::skip]
pub(super) const OLTP: &[Known] = &[
    ("tables", Kind::Number, "1", Use::Prepare, "number of tables"),
    ("table_size", Kind::Number, "10000", Use::Prepare, "rows per table"),
    ("auto_inc", Kind::Switch, "on", Use::Both, "ids from a sequence"),
    ("create_secondary", Kind::Switch, "on", Use::Prepare, "create an index on k"),
    ("secondary", Kind::Switch, "off", Use::Prepare, "create a secondary index on id instead of the primary key"),
    ("range_size", Kind::Number, "100", Use::Run, "rows per range select"),
    ("point_selects", Kind::Number, "10", Use::Run, "point selects per transaction"),
    ("simple_ranges", Kind::Number, "1", Use::Run, "simple range selects per transaction"),
    ("sum_ranges", Kind::Number, "1", Use::Run, "sums over a range per transaction"),
    ("order_ranges", Kind::Number, "1", Use::Run, "ordered range selects per transaction"),
    ("distinct_ranges", Kind::Number, "1", Use::Run, "distinct range selects per transaction"),
    ("range_selects", Kind::Switch, "on", Use::Run, "all four kinds of range selects"),
    ("index_updates", Kind::Number, "1", Use::Run, "updates of k per transaction"),
    ("non_index_updates", Kind::Number, "1", Use::Run, "updates of c per transaction"),
    ("delete_inserts", Kind::Number, "1", Use::Run, "rows replaced per transaction"),
    ("skip_trx", Kind::Switch, "off", Use::Run, "commit each statement separately"),
    ("reconnect", Kind::Number, "0", Use::Run, "connect again after this number of transactions; 0: never"),
    ("mysql_storage_engine", Kind::Text, "innodb", Use::Ignored("it is an option of MySQL"), "no meaning"),
    ("pgsql_variant", Kind::Text, "", Use::Refused("riops has no variant for Redshift"), "not supported"),
    ("serial_cache_size", Kind::Number, "0", Use::Prepare, "YugabyteDB: cache of the sequence"),
    ("range_key_partitioning", Kind::Switch, "off", Use::Prepare, "YugabyteDB: shard by ranges of id"),
    ("manual_range_splitting", Kind::Switch, "on", Use::Prepare, "YugabyteDB: split at equal steps"),
    ("num_table_splits", Kind::Number, "24", Use::Prepare, "YugabyteDB: tablets per table"),
    ("create_table_options", Kind::Text, "", Use::Prepare, "text after CREATE TABLE (...)"),
    ("num_rows_in_insert", Kind::Number, "10", Use::Run, "oltp_multi_insert: inserts per transaction"),
    ("batch_insert_count", Kind::Number, "4000", Use::Run, "oltp_multi_value_insert: rows per statement"),
    ("start_id", Kind::OneOf(&["1"]), "1", Use::Ignored("ids begin at 1"), "no meaning: ids begin at 1"),
];

/// Options that sysbench 1.0 does not have: with one of them, the report has the format of 1.1.
pub(super) const OF_1_1: [&str; 13] = [
    "warmup_time",
    "thread_init_timeout",
    "luajit_cmd",
    "rand_zipfian_exp",
    "pgsql_sslmode",
    "create_table_options",
    "num_rows_in_insert",
    "batch_insert_count",
    "start_id",
    "serial_cache_size",
    "range_key_partitioning",
    "manual_range_splitting",
    "num_table_splits",
];

/// The options of single tests, by the names of the tests.
#[rustfmt::skip]
pub(super) const OF_TESTS: &[(&str, &[Known])] = &[
    ("select_random_points", &[("random_points", Kind::Number, "10", Use::Run, "values in the list")]),
    ("select_random_ranges", &[
        ("number_of_ranges", Kind::Number, "10", Use::Run, "ranges in the condition"),
        ("delta", Kind::Number, "5", Use::Run, "size of each range"),
    ]),
];
