// Every exhibit, each defined in the file of its name. Internal to core/museum.
#pragma once
#include "core/museum/exhibit.h"

namespace ranklab::museum {

extern const Exhibit bf16_accumulation;
extern const Exhibit bf16_no_master;
extern const Exhibit bias_local_load;
extern const Exhibit capacity_local;
extern const Exhibit clip_first_tp_rank_only;
extern const Exhibit cp_attention_gradient;
extern const Exhibit dense_over_edp;
extern const Exhibit dropout_mask_repeated;
extern const Exhibit dropout_seed_per_rank;
extern const Exhibit dualpipe_unmerged;
extern const Exhibit empty_expert_skips;
extern const Exhibit expert_grad_times_ep;
extern const Exhibit experts_missing_from_norm;
extern const Exhibit gather_backward_slices;
extern const Exhibit grad_buffer_stale;
extern const Exhibit init_per_shard;
extern const Exhibit kv_heads_unreduced;
extern const Exhibit last_microbatch_local;
extern const Exhibit last_stage_unsynced;
extern const Exhibit loss_scale_unsynced;
extern const Exhibit mean_of_means;
extern const Exhibit mtp_loss_over_cp;
extern const Exhibit norm_averaged;
extern const Exhibit norm_per_ep_group;
extern const Exhibit norm_unreduced;
extern const Exhibit output_norm_partial;
extern const Exhibit replica_init;
extern const Exhibit resume_without_sampler;
extern const Exhibit rope_local_positions;
extern const Exhibit sampler_seed_per_rank;
extern const Exhibit scatter_wrong_group;
extern const Exhibit stale_gather;
extern const Exhibit tied_embedding_unsynced;
extern const Exhibit vocab_padding;
extern const Exhibit zero_padding;

}  // namespace ranklab::museum
