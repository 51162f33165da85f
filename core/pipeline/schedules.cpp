#include "core/pipeline/schedules.h"

#include <array>

#include "core/base/error.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

const auto kKinds = std::to_array<ScheduleKind>({
    {"gpipe", "all forwards, then all backwards", "arXiv 1811.06965", 1, make_gpipe},
    {"1f1b", "one forward and one backward in turn", "arXiv 2006.09503", 1, make_1f1b},
    {"interleaved-1f1b", "1F1B with v stages per rank", "arXiv 2104.04473", 0, make_interleaved_1f1b, true},
    {"looped-bfs", "v stages per rank, all microbatches through each in turn", "arXiv 2211.05953", 0, make_looped_bfs},
    {"zb-h1", "1F1B with W moved into the cooldown", "arXiv 2401.10241", 1, make_zb_h1},
    {"zb-h2", "twice the warm-up, with W filling the bubble", "arXiv 2401.10241", 1, make_zb_h2},
    {"zb-2p", "searched, within twice 1F1B's memory", "arXiv 2401.10241", 1, make_zb_2p},
    {"zb-v", "V shape: two stages per rank, down and back up", "arXiv 2401.10241", 2, make_zb_v},
    {"v-half", "V shape, in half of 1F1B's memory", "arXiv 2405.15362", 2, make_v_half},
    {"v-min", "V shape, in a third of 1F1B's memory", "arXiv 2405.15362", 2, make_v_min},
    {"dualpipe", "both directions at once, F and BW overlapped", "arXiv 2412.19437", 1, make_dualpipe},
    {"dualpipe-v", "DualPipe cut in half: V shape, F and BW overlapped", "deepseek-ai/DualPipe", 2, make_dualpipe_v},
});

void check_size(const ScheduleKind& kind, const char* what, int64_t value, int64_t most, const char* flag) {
  RANKLAB_CHECK(value >= 1 && value <= most, ErrorKind::kInvalidArgument, .where = std::string("schedule ") + kind.name,
                .what = std::string("illegal number of ") + what, .got = std::to_string(value),
                .want = "1 to " + std::to_string(most), .fix = std::string("change ") + flag);
}

void check_request(const ScheduleKind& kind, const ScheduleRequest& request) {
  check_size(kind, "pipeline ranks", request.num_ranks, kMostPipelineRanks, "--pp");
  check_size(kind, "microbatches", request.num_microbatches, kMostMicrobatches, "--num-microbatches");
  check_size(kind, "stages a rank", request.num_chunks, kMostChunks, "--vpp");
  RANKLAB_CHECK(kind.chunks == 0 || request.num_chunks == 1 || request.num_chunks == kind.chunks,
                ErrorKind::kInvalidArgument, .where = std::string("schedule ") + kind.name,
                .what = "this schedule decides itself how many stages a rank holds",
                .got = std::to_string(request.num_chunks) + " stages a rank", .want = std::to_string(kind.chunks),
                .fix = "leave --vpp out, or use interleaved-1f1b or looped-bfs");
  RANKLAB_CHECK(request.group_size == 0 || kind.groups, ErrorKind::kInvalidArgument,
                .where = std::string("schedule ") + kind.name, .what = "this schedule has no groups of microbatches",
                .got = "--microbatch-group-size-per-virtual-pipeline-stage " + std::to_string(request.group_size),
                .want = "interleaved-1f1b", .fix = "leave it out, or use interleaved-1f1b");
  const int64_t chunks = kind.chunks == 0 ? request.num_chunks : kind.chunks;
  const int64_t cells = chunks * request.num_ranks * request.num_microbatches;
  RANKLAB_CHECK(cells <= kMostCells, ErrorKind::kInvalidArgument, .where = std::string("schedule ") + kind.name,
                .what = "there are too many actions to list",
                .got = strprintf("%ld stages x %d microbatches", static_cast<long>(chunks * request.num_ranks),
                                 request.num_microbatches),
                .want = strprintf("a product of at most %ld", static_cast<long>(kMostCells)),
                .fix = "lower --num-microbatches: the bubble's time does not depend on it");
}

}  // namespace

std::span<const ScheduleKind> schedule_kinds() { return kKinds; }

const ScheduleKind& find_schedule_kind(const std::string& name) {
  return named_row(kKinds, name,
                   {.where = "schedule",
                    .what = "no such schedule",
                    .want = join(row_names(kKinds), ", "),
                    .fix = "ranklab schedule list"});
}

Schedule make_schedule(const std::string& name, const ScheduleRequest& request, const ScheduleCosts& costs) {
  const ScheduleKind& kind = find_schedule_kind(name);
  check_request(kind, request);
  require_legal(costs);
  return kind.make(request, costs);
}

}  // namespace ranklab
