// Inverted lists whose arrays Python owns, and the scratch memory of their calls.
#pragma once
#include "../forest.hpp"

#include "beamwood/index/index_search.hpp"

struct IndexScratch {
  beamwood::QueryBatch batch;
  std::vector<beamwood::IndexSearch> searches; // per worker
};

struct PyPostings {
  beamwood::Postings index;
  std::vector<std::shared_ptr<void>> owners; // keeps the arrays that the spans look at
  Shelf<IndexScratch> shelf;
};
