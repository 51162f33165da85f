#include "core/checkpoint/hf_rope.h"

#include <set>

#include "core/base/text.h"
#include "core/checkpoint/read_only_file.h"

namespace ranklab {
namespace {

// The members of one JSON object, by name.
class Members {
 public:
  Members(const HfJson& object, std::string where, const std::string& path)
      : object_(object), where_(std::move(where)), path_(path) {}

  HfValue value(const std::string& key) const {
    const auto found = object_.find(key);
    return {found == object_.end() ? HfJson() : *found, where_ + key, path_};
  }
  double number(const std::string& key, double absent) const {
    const HfValue found = value(key);
    return found.is_null() ? absent : found.number();
  }
  const HfJson& object() const { return object_; }

 private:
  const HfJson& object_;
  std::string where_;
  const std::string& path_;
};

void require_whole_head(const Members& members) {
  const HfValue part = members.value("partial_rotary_factor");
  if (!part.is_null() && part.number() != 1.0) part.refuse("1: the whole head turns");
}

// Not given, mscale and mscale_all_dim mean what 1 and 0 do.
void read_yarn(ModelConfig& c, const Members& members, const std::string& path) {
  static const std::set<std::string> kKnown = {
      "rope_type",        "type",      "rope_theta", "factor",         "original_max_position_embeddings",
      "beta_fast",        "beta_slow", "mscale",     "mscale_all_dim", "partial_rotary_factor",
      "attention_factor", "truncate"};
  for (const auto& [key, value] : members.object().items()) {
    if (!kKnown.contains(key)) HfValue(value, "rope_scaling." + key, path).refuse("no such key");
  }
  const HfValue factor = members.value("attention_factor"), truncate = members.value("truncate");
  if (!factor.is_null()) factor.refuse("none: it follows from mscale");
  if (!truncate.is_null() && !truncate.boolean()) truncate.refuse("true");
  c.yarn = {.scaling_factor = members.value("factor").number(),
            .original_seq_length = members.value("original_max_position_embeddings").integer(),
            .beta_fast = members.number("beta_fast", 32),
            .beta_slow = members.number("beta_slow", 1),
            .mscale = members.number("mscale", 0),
            .mscale_all_dim = members.number("mscale_all_dim", 0)};
  if (c.yarn.mscale == 0 && c.yarn.mscale_all_dim == 0) c.yarn.mscale = 1;
}

}  // namespace

void write_hf_rope(HfJson& file, const ModelConfig& c) {
  if (c.position != PositionKind::kRope) return;
  file["rope_theta"] = c.rope_theta;
  if (!c.yarn.enabled()) return;
  file["rope_scaling"] = {{"type", "yarn"},
                          {"rope_type", "yarn"},
                          {"factor", c.yarn.scaling_factor},
                          {"original_max_position_embeddings", c.yarn.original_seq_length},
                          {"beta_fast", c.yarn.beta_fast},
                          {"beta_slow", c.yarn.beta_slow},
                          {"mscale", c.yarn.mscale},
                          {"mscale_all_dim", c.yarn.mscale_all_dim}};
}

void read_hf_rope(ModelConfig& c, const HfJson& file, const std::string& path) {
  if (c.position != PositionKind::kRope) return;
  const Members outer(file, "", path);
  require_whole_head(outer);
  c.rope_theta = outer.number("rope_theta", c.rope_theta);
  const char* name = "rope_parameters";
  if (outer.value(name).is_null()) name = "rope_scaling";
  const HfValue inner = outer.value(name);
  if (inner.is_null()) return;
  if (!inner.json().is_object()) inner.refuse_damaged("an object");
  const Members members(inner.json(), std::string(name) + ".", path);
  require_whole_head(members);
  c.rope_theta = members.number("rope_theta", c.rope_theta);
  const HfValue type = members.value(members.value("rope_type").is_null() ? "type" : "rope_type");
  const std::string kind = type.is_null() ? "default" : type.text();
  if (kind == "default") return;
  if (kind != "yarn") type.refuse("default, or yarn with latent attention");
  if (!c.mla.enabled()) type.refuse("default: YaRN is for latent attention (DeepseekV3ForCausalLM)");
  read_yarn(c, members, path);
}

}  // namespace ranklab
