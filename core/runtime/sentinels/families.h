// The families of sentinels, one file each: a new one is a function here and a row of kFamilies in monitor.cpp.
#pragma once
#include <memory>

#include "core/runtime/sentinels/family.h"

namespace ranklab {

std::unique_ptr<SentinelFamily> make_loss_family(SentinelContext& context, RankTable& table);
std::unique_ptr<SentinelFamily> make_gradient_family(SentinelContext& context, RankTable& table);
std::unique_ptr<SentinelFamily> make_expert_family(SentinelContext& context, RankTable& table);
std::unique_ptr<SentinelFamily> make_time_family(SentinelContext& context, RankTable& table);
std::unique_ptr<SentinelFamily> make_memory_family(SentinelContext& context, RankTable& table);
std::unique_ptr<SentinelFamily> make_checkpoint_family(SentinelContext& context, RankTable& table);
std::unique_ptr<SentinelFamily> make_rate_family(SentinelContext& context, RankTable& table);
std::unique_ptr<SentinelFamily> make_data_family(SentinelContext& context, RankTable& table);
std::unique_ptr<SentinelFamily> make_update_family(SentinelContext& context, RankTable& table);
std::unique_ptr<SentinelFamily> make_histogram_family(SentinelContext& context, RankTable& table);
std::unique_ptr<SentinelFamily> make_activation_family(SentinelContext& context, RankTable& table);
std::unique_ptr<SentinelFamily> make_probe_family(SentinelContext& context, RankTable& table);
std::unique_ptr<SentinelFamily> make_replica_family(SentinelContext& context, RankTable& table);

}  // namespace ranklab
