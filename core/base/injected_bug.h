// Historical bugs of distributed training, each a switch at the place in this code where it would be (core/museum tells
// their stories). A run sets its own with InjectedBugs; nothing else is touched by them. Cost of injected(): a word of
// the thread is read. Thread rule: bugs belong to a thread, since ranks are threads: runs in one process, one inside
// another or beside it, do not see each other's.
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

// constinit: read without asking first whether it was initialized.
extern thread_local constinit uint64_t injected_bugs_of_thread;

inline bool injected(InjectedBug bug) { return (injected_bugs_of_thread >> static_cast<unsigned>(bug) & 1) != 0; }

// While alive, exactly these bugs are in this thread; afterwards those that were in it before.
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
