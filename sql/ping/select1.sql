-- The least that a server can be asked to execute.
select 1
