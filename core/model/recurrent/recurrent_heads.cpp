#include "core/model/recurrent/recurrent_heads.h"

#include "core/model/attention_split.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/parallel/context/head_exchange.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {

at::Tensor document_of_positions(const ForwardContext& context, int64_t positions) {
  const Documents* documents = context.batch.documents.get();
  if (documents == nullptr || !documents->segment_BS.defined()) return {};
  const NoCostScope view;
  return padded_positions(documents->segment_BS, positions).t();
}

at::Tensor own_heads_of_all_positions(const at::Tensor& x, const std::vector<int64_t>& widths,
                                      const ContextParallel& cp) {
  const int n = cp.size();
  std::vector<at::Tensor> by_rank;
  for (const at::Tensor& part : x.split_with_sizes(widths, -1))
    by_rank.push_back(part.unflatten(-1, {n, part.size(-1) / n}));
  return heads_of_all_positions(at::cat(by_rank, -1).flatten(-2), cp);
}

at::Tensor own_head_rows(const at::Tensor& weight, const std::vector<int64_t>& widths, const ContextParallel& cp) {
  std::vector<at::Tensor> own;
  for (const at::Tensor& part : weight.split_with_sizes(widths, 0)) {
    const int64_t rows = part.size(0) / cp.size();
    own.push_back(part.narrow(0, cp.rank() * rows, rows));
  }
  return own.size() == 1 ? own[0] : at::cat(own, 0);
}

AttentionCache recurrent_cache(int64_t sequences, const MemorySizes& sizes, const at::TensorOptions& options) {
  AttentionCache cache;
  cache.convolved = at::empty({sizes.kernel - 1, sequences, sizes.width}, options);
  cache.memory =
      at::empty({sequences, sizes.heads, sizes.rows, sizes.columns}, options.dtype(kernel_wide_type(cache.convolved)));
  return cache;
}

void begin_text(AttentionCache& cache) {
  if (cache.positions > 0) return;
  cache.convolved.zero_();
  cache.memory.zero_();
}

}  // namespace ranklab
