#include "core/nn/matrix_parts.h"

#include <algorithm>

#include "core/sim/aten.h"

namespace ranklab {
namespace {

// The number of rows of each part in a shard.
std::vector<int64_t> rows_of_parts(const Parameter& parameter, const at::Tensor& shard) {
  if (parameter.partition.dim != 0) return {shard.size(0)};
  std::vector<int64_t> rows;
  for (const auto& [begin, end] : parameter.partition.ranges) rows.push_back(end - begin);
  return rows;
}

}  // namespace

MatrixWork matrix_work(const Parameter& parameter, int ranks) {
  const int dim = parameter.partition.dim;
  const auto cols = static_cast<double>(parameter.data.size(1) * (dim == 1 ? ranks : 1));
  MatrixWork work;
  for (const int64_t local : rows_of_parts(parameter, parameter.data)) {
    const auto rows = static_cast<double>(local * (dim == 0 ? ranks : 1));
    work += {.cost = rows * cols * std::min(rows, cols), .matrices = 1};
  }
  return work;
}

at::Tensor map_parts(const Parameter& parameter, const std::vector<at::Tensor>& shards, size_t own,
                     const MatrixMap& map) {
  const int64_t dim = parameter.partition.dim == 1 ? 1 : 0;
  std::vector<at::Tensor> mapped;
  int64_t row = 0;
  for (const int64_t rows : rows_of_parts(parameter, shards[0])) {
    std::vector<at::Tensor> pieces;
    for (const at::Tensor& shard : shards) pieces.push_back(shard.narrow(0, row, rows));
    const at::Tensor whole = map(pieces.size() == 1 ? pieces[0] : at::cat(pieces, dim));
    const int64_t width = pieces[0].size(dim);
    mapped.push_back(whole.narrow(dim, static_cast<int64_t>(own) * width, width));
    row += rows;
  }
  return mapped.size() == 1 ? mapped[0].contiguous() : at::cat(mapped);
}

}  // namespace ranklab
