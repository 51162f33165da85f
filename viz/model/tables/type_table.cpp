#include "viz/model/tables/type_table.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/base/text.h"
#include "viz/model/tables/op_table.h"

namespace ranklab::viz {

std::vector<TypeRow> type_table(const TraceStore& store, const Window& window) {
  std::map<std::pair<std::string, uint32_t>, TypeRow> rows;
  for (const RankTrace& trace : store.traces()) {
    for (const Event& event : trace.events) {
      if (!event.types.known() || !window.has(event, store.clock())) continue;
      const std::string op = op_name(trace, event);
      TypeRow& row = rows[{op, event.types.bits()}];
      row.op = op;
      row.types = event.types;
      ++row.count;
      row.logical_bytes += event.logical_bytes;
    }
  }
  std::vector<TypeRow> out;
  for (auto& [key, row] : rows) out.push_back(std::move(row));
  std::stable_sort(out.begin(), out.end(), [](const TypeRow& a, const TypeRow& b) {
    return std::tie(a.op, b.count) < std::tie(b.op, a.count);
  });
  return out;
}

std::string type_text(const std::vector<TypeRow>& rows) {
  if (rows.empty()) return {};
  std::string out = strprintf("%-32s %8s %12s  %s\n", "types of tensors", "count", "logical", "before -> after");
  for (const TypeRow& row : rows)
    out += strprintf("  %-30s %8lld %12s  %s\n", short_name(row.op).c_str(), static_cast<long long>(row.count),
                     human_bytes(static_cast<double>(row.logical_bytes)).c_str(), row.types.text().c_str());
  return out;
}

}  // namespace ranklab::viz
