// Predicts the time, memory and traffic of a step of a user's own model, without running it.
#pragma once
#include <cstdio>
#include <string>

#include "backends/meta/meta_world.h"
#include "core/base/text.h"
#include "core/plan/record_step.h"
#include "core/plan/report/axis_traffic.h"
#include "core/plan/step_time.h"

namespace ranklab::examples {

inline int dry_run(const RuntimeComponents& parts, const RunPlan& plan) {
  const StepRecord record = record_step(plan, make_meta_world, parts);
  const StepTime time = time_of(record);
  std::printf("%d ranks on %s: virtual step %.3f ms, computing %.3f ms of it\n", plan.mesh.world_size(),
              plan.profile.title.c_str(), time.total_ns * 1e-6, time.compute_ns * 1e-6);
  const RankRecord& fullest = record.fullest();
  for (size_t c = 0; c < fullest.at_peak.size(); ++c)
    if (fullest.at_peak[c] > 0)
      std::printf("  %-12s %s\n", std::string(name(static_cast<MemoryCategory>(c))).c_str(),
                  human_bytes(static_cast<double>(fullest.at_peak[c])).c_str());
  for (const AxisTraffic& row : axis_traffic(record, plan))
    std::printf("  over %-7s %ld calls, %s sent by a rank\n", std::string(name(row.axis)).c_str(),
                static_cast<long>(row.per_rank.calls),
                human_bytes(static_cast<double>(row.per_rank.ring_bytes)).c_str());
  return 0;
}

}  // namespace ranklab::examples
