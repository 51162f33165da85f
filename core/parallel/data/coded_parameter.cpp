#include "core/parallel/data/coded_parameter.h"

namespace ranklab {

std::vector<CodedPart> parts_of(const CodedParameter& parameter) {
  const TensorPrecision& precision = parameter.precision;
  const bool in_parts = precision.granularity == Granularity::kTile || precision.granularity == Granularity::kBlock;
  std::vector<int64_t> rows = parameter.row_parts;
  if (!in_parts || rows.empty()) rows = {parameter.elements / parameter.cols};
  std::vector<CodedPart> parts;
  CodedPart next{.cols = parameter.cols};
  for (const int64_t count : rows) {
    next.rows = count;
    next.groups = group_shape(precision, Along::kColumns, count, parameter.cols);
    parts.push_back(next);
    next.begin = next.end();
    next.first_group += next.group_count();
  }
  return parts;
}

int64_t group_count(const CodedParameter& parameter) {
  const CodedPart last = parts_of(parameter).back();
  return last.first_group + last.group_count();
}

}  // namespace ranklab
