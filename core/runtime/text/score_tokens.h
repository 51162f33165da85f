// How likely a model finds tokens, in any layout: the sum of ln p(token | the tokens before it) over the last tokens of
// each request, with packed documents kept separate as in the run's settings. Replicas divide the requests among
// themselves; tensor-parallel, pipeline and expert peers work together. A request's result depends neither on which
// replica scores it nor on the other requests. Cost: one forward per batch of requests, padded to the longest of the
// batch; or per request, if rows of a batch depend on each other or positions depend on the sequence's length. Thread
// rule: each rank's thread, collective over the world.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/runtime/components.h"

namespace ranklab {

struct ScoreRequest {
  std::span<const int64_t> tokens = {};    // at most seq_length + 1; they outlive the call
  int64_t first = 1;                       // index of the first token that is scored; at least 1
  std::optional<int64_t> none_after = {};  // the token after this one, which ends documents, is not scored

  bool scores(int64_t place) const { return place >= first && tokens[static_cast<size_t>(place - 1)] != none_after; }
  int64_t scored() const;
};

// REQUIRES: context.schedule, the same requests on all ranks, dropout off. `done` reports progress in batches, on
// every rank; it may throw. RETURNS: one sum per request, the same on every rank.
std::vector<double> score_tokens(StepContext& context, std::span<const ScoreRequest> requests,
                                 const std::function<void(size_t batches, size_t of)>& done = {});

// Windows of at most `context` tokens and the token that follows, one every `stride` tokens. Each token from `first` on
// is scored once, given at least context - stride preceding tokens if there are that many. With stride = context and
// first = 1 these are the samples of TokenDataset. REQUIRES: 1 <= stride <= context, 1 <= first <= context, and more
// than `first` tokens.
std::vector<ScoreRequest> text_windows(std::span<const int64_t> tokens, int64_t context, int64_t stride,
                                       int64_t first = 1);

}  // namespace ranklab
