// How the search ranks its hits: as Sphinx does, but pages of the library come after all others.
var Scorer = {
  score: ([page, , , , score]) => (page.startsWith("book/api/") ? score - 30 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
