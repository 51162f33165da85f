// Explains why a tensor is wrong: tries what a faulty reduction, scatter or update would have made of the right values,
// and tells which of these reproduces the values found. Thread rule: pure.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/parity/compare/compare.h"

namespace ranklab {

struct Explanation {
  std::string what;               // "the sum over tp is missing: ..."
  std::vector<std::string> axes;  // the mesh axes that it names; empty: none
};

// Explanations, the most specific first.
std::vector<Explanation> explain(const ParityRecord& got, const ParityReference& want, const TensorVerdict& wrong);

// Along which axes copies differ, when none of them is known to be right. `differ` returns whether two of the ranks,
// given by their index in the list, have different bits for the same elements.
std::vector<Explanation> explain_copies(const ParityMesh& mesh, const std::vector<int>& ranks,
                                        const std::function<bool(size_t, size_t)>& differ);
// The same for a tensor of an audited record.
std::vector<Explanation> explain_copies(const ParityRecord& got, const TensorKey& key);

// The wrong elements as a box of the global tensor: "rows 8 to 15 of [16, 8, 32]"; empty if all elements are wrong.
std::string where_wrong(const ParityRecord& got, const ParityReference& want, const TensorVerdict& wrong);

}  // namespace ranklab
