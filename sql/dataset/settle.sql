-- Planner statistics, and frozen rows: otherwise the first reads would set hint bits and dirty the
-- blocks.
vacuum (freeze, analyze) riops.{table}
