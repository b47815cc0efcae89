// The pages of `riops serve`.
export {};
