vacuum (analyze) {tables}
