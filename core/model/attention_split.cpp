#include "core/model/attention_split.h"

#include "core/base/injected_bug.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {

at::Tensor padded_positions(const at::Tensor& position_BS, int64_t rows) {
  const int64_t missing = rows - position_BS.size(1);
  return missing > 0 ? at::constant_pad_nd(position_BS, {0, missing}) : position_BS;
}

namespace {

std::shared_ptr<const ScoreDropout> dropout_of(const ForwardContext& context, const ContextParallel& exchange,
                                               const AttentionHeads& heads) {
  // Ranks that exchange heads for positions each get an equal share of the heads, in order.
  const int64_t first = heads.first + exchange.rank() * (heads.own / exchange.size());
  return std::make_shared<const ScoreDropout>(ScoreDropout{.p = context.attention_dropout,
                                                           .seed = context.seed,
                                                           .layer_name = heads.layer_name + ".dropout",
                                                           .step = static_cast<uint64_t>(context.tokens.step),
                                                           .first_sample = context.tokens.first_sample,
                                                           .first_head = first,
                                                           .heads = heads.all,
                                                           .seq_length = context.tokens.seq_length,
                                                           .offset = context.tokens.random_offset});
}

// The starts of the documents, chunks, or both within which queries attend; null: to the whole sequence.
std::shared_ptr<const DocumentStarts> starts_of(const ForwardContext& context, int64_t seq, int64_t chunk) {
  const Documents* documents = context.batch.documents.get();
  const bool apart = documents != nullptr && documents->separate, in_chunks = chunk > 0 && chunk < seq;
  if (!in_chunks) {
    if (!apart) return nullptr;
    return {context.batch.documents, &documents->starts};  // shares ownership of the batch
  }
  auto all = std::make_shared<DocumentStarts>();
  for (const std::vector<int64_t>& starts : apart ? documents->starts : DocumentStarts{{0}}) {
    std::vector<int64_t>& own = all->emplace_back();
    for (size_t i = 0; i < starts.size(); ++i)
      add_chunk_starts(own, starts[i], i + 1 < starts.size() ? starts[i + 1] : seq, chunk);
  }
  return all;
}

// The positions, in whole sequences, of documents whose positions restart; undefined if positions do not restart.
at::Tensor document_positions(const ForwardContext& context, int64_t rows) {
  const Documents* documents = context.batch.documents.get();
  if (documents == nullptr || !documents->position_BS.defined()) return {};
  return padded_positions(documents->position_BS, context.part != nullptr ? context.part->seq_length : rows);
}

}  // namespace

at::Tensor row_positions(const ForwardContext& context, int64_t rows, c10::Device device) {
  const NoCostScope views;
  const SequencePart* part = context.part.get();
  if (const at::Tensor all_BS = document_positions(context, rows); all_BS.defined())
    return part != nullptr ? all_BS.index_select(1, part->index) : all_BS;
  if (part != nullptr) return part->index;
  const int64_t past = context.cache != nullptr ? context.cache->positions : 0;
  return at::arange(past, past + rows, at::TensorOptions(at::kLong).device(device));
}

SoftmaxHeads watched_heads(const SoftmaxHeads& heads, int64_t chunk) {
  if (chunk == 0) return heads;
  const int64_t begin = (heads.q.size(2) / chunk - 1) * chunk;
  const auto of_chunk = [&](const at::Tensor& x) { return x.narrow(2, begin, chunk); };
  return {of_chunk(heads.q), of_chunk(heads.k), of_chunk(heads.v)};
}

AttentionSplit attention_split(const ForwardContext& context, const ContextParallel& of_layer, const ScoreRule& scores,
                               const RopeTable& table, int64_t rows, const AttentionHeads& heads, int64_t chunk) {
  const SequencePart* part = context.part.get();
  const ContextParallel cp = part != nullptr ? of_layer : ContextParallel{};
  AttentionSplit split{.heads = cp.head_group(), .keys = cp.key_group(), .rule = {.scores = scores}, .rope = {}};
  if (split.heads.active()) {
    const int64_t after = heads.own / split.heads.size();
    for (at::Tensor* of_heads : {&split.rule.scores.sinks, &split.rule.scores.max_logits})
      if (of_heads->defined()) *of_heads = of_heads->narrow(0, split.heads.rank() * after, after);
  }
  const int64_t seq = part != nullptr ? part->seq_length : rows;
  const bool whole = !split.in_blocks() && context.batch.documents == nullptr && context.attention_dropout == 0;
  split.rule.documents = starts_of(context, seq, chunk);
  if (whole && split.rule.documents != nullptr) split.chunk = chunk;
  if (context.attention_dropout > 0) split.rule.dropout = dropout_of(context, split.heads, heads);
  const NoCostScope views;
  split.rope = rope_for(table, seq);
  if (injected(InjectedBug::kRopeLocalPositions) && split.keys.active()) {
    split.rope = rope_for(table, rows);
    return split;
  }
  at::Tensor index;  // undefined: all positions, in order
  if (split.keys.active()) index = split.heads.active() ? part->exchanged : part->index;
  if (const at::Tensor all = document_positions(context, rows); all.defined())
    index = index.defined() ? all.index_select(1, index) : all;
  if (index.defined()) split.rope = rope_at(split.rope, index);
  return split;
}

at::Tensor ForwardContext::own_positions(const at::Tensor& x_BS) const {
  if (part == nullptr) return x_BS;
  const NoCostScope free;
  return x_BS.index_select(1, part->index);
}

}  // namespace ranklab
