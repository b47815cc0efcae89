-- Statistics for the planner, and no row left whose visibility the first reader would have to write down.
vacuum (freeze, analyze) {table}
