-- The smallest query that returns a row.
select 1
