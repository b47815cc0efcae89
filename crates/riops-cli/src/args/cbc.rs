//! The options of `riops run cbc` and `riops cleanup cbc`.

use clap::{Args, ValueEnum};
use riops::plan::CbcSize;
use riops::units::{Count, Span};

use super::{RecordOptions, TargetOptions};

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct RunCbc {
    /// Nominal size of the table: 20GB, 0.5, 500MB, or auto for three times the memory of the server's
    /// machine; its true size depends on the server's version [default: 20GB]
    #[arg(long, value_name = "SIZE", help_heading = "Work")]
    pub(crate) size: Option<CbcSize>,
    /// Then measure the selects by so many sessions at once; each number makes a stage of its own for
    /// each of the three
    #[arg(long, value_name = "N,…", value_delimiter = ',', help_heading = "Work")]
    pub(crate) query_sessions: Vec<Count>,
    /// Length of each of these stages [default: 120s]
    #[arg(long, value_name = "TIME", help_heading = "Work", requires = "query_sessions")]
    pub(crate) query_duration: Option<Span>,
    #[arg(
        long,
        help_heading = "Work",
        help = "Empty the caches before SELECT_u1 and SELECT_u2: shared buffers (PostgreSQL 17 or later) and, where the server's files can be read, the page cache"
    )]
    pub(crate) cold: bool,
    #[arg(
        long,
        value_enum,
        value_name = "WHERE",
        help_heading = "Dataset",
        help = "Where to make the table: in a database of its own, riops_cbc, or in the schema riops of the database that was named [default: database]"
    )]
    pub(crate) place: Option<Place>,
    /// Leave the table there (riops cleanup cbc drops it)
    #[arg(long, help_heading = "Dataset")]
    pub(crate) keep: bool,
    /// Begin even where the free disk space does not seem to be enough
    #[arg(long, help_heading = "Dataset")]
    pub(crate) skip_space_check: bool,
    #[command(flatten)]
    pub(crate) record: RecordOptions,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

// Where the table is made. No doc comments here: they would turn every --help into its long form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Place {
    Database,
    Schema,
}
