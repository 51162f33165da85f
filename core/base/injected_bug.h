// Historical bugs of distributed training, each a switch at the place in this code where the bug would be (core/museum
// tells their stories). A run turns on its own bugs with InjectedBugs; other runs are not affected. Cost of injected():
// one thread-local word is read. Thread rule: bugs belong to a thread, because ranks are threads; runs in one process,
// nested or side by side, do not see each other's bugs.
#pragma once
#include <cstdint>
#include <span>

namespace ranklab {

enum class InjectedBug : uint8_t {
  // weights and data
  kInitPerShard,
  kReplicaInit,
  kSamplerSeedPerRank,
  kResumeRestartsData,
  // forward
  kScatterWrongGroup,
  kDropoutSeedPerRank,
  kDropoutMaskRepeated,
  kRopeLocalPositions,
  kCapacityLocal,
  kEmptyExpertSkips,
  kVocabPadding,
  // backward
  kMeanOfMeans,
  kMtpLossOverCp,
  kCpAttentionGradient,
  kKvHeadsUnreduced,
  kGatherBackwardSlices,
  kGradBufferStale,
  kBf16Accumulation,
  // reductions
  kNormUnreduced,
  kNormAveraged,
  kOutputNormPartial,
  kDenseOverEdp,
  kExpertGradTimesEp,
  kLastMicrobatchLocal,
  kLastStageUnsynced,
  kTiedEmbeddingUnsynced,
  kDualPipeUnmerged,
  // the norm and the update
  kExpertsMissingFromNorm,
  kNormPerEpGroup,
  kClipFirstTpRankOnly,
  kLossScaleUnsynced,
  kBf16NoMaster,
  kZeroPadding,
  kStaleGather,
  kBiasLocalLoad,
  kCount
};
static_assert(static_cast<unsigned>(InjectedBug::kCount) <= 64, "a word has a bit for each");

// constinit, so that reads need no check whether it has been initialized.
extern thread_local constinit uint64_t injected_bugs_of_thread;

inline bool injected(InjectedBug bug) { return (injected_bugs_of_thread >> static_cast<unsigned>(bug) & 1) != 0; }

// While this object is alive, exactly these bugs are on in this thread; afterwards the previous ones are restored.
class InjectedBugs {
 public:
  explicit InjectedBugs(std::span<const InjectedBug> bugs);
  ~InjectedBugs() { injected_bugs_of_thread = before_; }
  InjectedBugs(const InjectedBugs&) = delete;
  InjectedBugs& operator=(const InjectedBugs&) = delete;

 private:
  uint64_t before_;
};

}  // namespace ranklab
