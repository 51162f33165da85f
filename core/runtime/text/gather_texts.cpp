#include "core/runtime/text/gather_texts.h"

#include <algorithm>
#include <cstring>

#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {

std::vector<std::string> gather_texts(const std::string& mine, Communicator& world, c10::Device device) {
  const NoCostScope free;
  const auto size = static_cast<int64_t>(mine.size());
  const at::Tensor sizes = world.all_gather(at::full({1}, size, at::kLong).to(device)).to(at::kCPU);
  const int64_t* of_rank = sizes.const_data_ptr<int64_t>();
  const int64_t longest = std::max<int64_t>(*std::max_element(of_rank, of_rank + world.size()), 1);
  const at::Tensor row = at::zeros({1, longest}, at::kByte);
  std::memcpy(row.mutable_data_ptr(), mine.data(), mine.size());
  const at::Tensor all = world.all_gather(row.to(device)).to(at::kCPU).contiguous();
  const auto* bytes = static_cast<const char*>(all.const_data_ptr());
  std::vector<std::string> texts;
  for (int rank = 0; rank < world.size(); ++rank)
    texts.emplace_back(bytes + rank * longest, static_cast<size_t>(of_rank[rank]));
  return texts;
}

}  // namespace ranklab
