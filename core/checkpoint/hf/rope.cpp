#include "core/checkpoint/hf/rope.h"

#include <cmath>
#include <map>
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

// Whether the class has separate RoPEs for layers with and without a window (Gemma 3, OLMo 3). Their keys, which were
// read before, set this base.
bool has_kinds_of_layers(const ModelConfig& c) { return c.local_rope_theta > 0; }

void read_share(ModelConfig& c, const Members& members) {
  const HfValue part = members.value("partial_rotary_factor");
  if (part.is_null()) return;
  c.rotary_percent = part.number();
  if (!(c.rotary_percent > 0 && c.rotary_percent <= 1)) part.refuse("above 0, at most 1");
  if (c.mla.enabled() && c.rotary_percent != 1) part.refuse("1: qk_rope_head_dim says what turns");
}

// transformers ignores members it does not know; here RoPE scaling that is not fully understood is refused.
void require_known(const Members& members, std::set<std::string> known) {
  known.insert({"rope_type", "type", "rope_theta", "factor", "partial_rotary_factor"});
  for (const auto& [key, value] : members.object().items()) {
    if (!known.contains(key) && !value.is_null()) members.value(key).refuse("no such key");
  }
}

// A length outside the object takes precedence; without any length, it is the model's maximum length. Phi-3's class has
// its own default, and classes with one object per kind of layer do not look outside.
int64_t original_length(const ModelConfig& c, const Members& members, const Members& outer) {
  constexpr int64_t kOfPhi3 = 4096;
  const char* key = "original_max_position_embeddings";
  const HfValue own = members.value(key), of_model = outer.value(key);
  const int64_t inner = own.is_null() ? c.seq_length : own.integer();
  const bool is_phi3 = c.hf_architecture == "Phi3ForCausalLM";
  if (has_kinds_of_layers(c)) {
    if (!of_model.is_null() && of_model.integer() != inner)
      of_model.refuse(std::to_string(inner) + ", which the class takes: it does not look outside its RoPE");
    return inner;
  }
  if (!of_model.is_null()) return of_model.integer();
  if (is_phi3 && !own.is_null() && inner != kOfPhi3)
    own.refuse("the same key outside: without one the class takes " + std::to_string(kOfPhi3));
  return is_phi3 ? kOfPhi3 : inner;
}

// mscale and mscale_all_dim default to 1 and 0; in transformers, one without the other does not affect queries and
// keys.
void read_yarn(ModelConfig& c, const Members& members, const Members& outer) {
  require_known(members, {"original_max_position_embeddings", "beta_fast", "beta_slow", "mscale", "mscale_all_dim",
                          "attention_factor", "truncate"});
  const HfValue factor = members.value("attention_factor"), truncate = members.value("truncate");
  c.yarn = {.scaling_factor = members.value("factor").number(),
            .original_seq_length = original_length(c, members, outer),
            .beta_fast = members.number("beta_fast", 32),
            .beta_slow = members.number("beta_slow", 1),
            .mscale = members.number("mscale", 0),
            .mscale_all_dim = members.number("mscale_all_dim", 0),
            .truncate = truncate.is_null() || truncate.boolean()};
  if (!factor.is_null()) {
    c.yarn.attention_factor = factor.number();
    if (!(c.yarn.attention_factor > 0)) factor.refuse("a number above 0");
  }
  const bool both = c.yarn.mscale != 0 && c.yarn.mscale_all_dim != 0;
  const bool neither = c.yarn.mscale == 0 && c.yarn.mscale_all_dim == 0;
  if (neither || (!both && !c.mla.enabled())) c.yarn.mscale = 1, c.yarn.mscale_all_dim = 0;
}

// transformers scales the base from max_position_embeddings. Here the model's length is that length times the factor.
void read_dynamic(ModelConfig& c, const Members& members) {
  require_known(members, {"original_max_position_embeddings"});
  const HfValue original = members.value("original_max_position_embeddings");
  if (!original.is_null() && original.integer() != c.seq_length)
    original.refuse("max_position_embeddings, " + std::to_string(c.seq_length) + ": the class knows no other");
  constexpr double kLongest = 1 << 24;
  c.rope_scaling.original_seq_length = c.seq_length;
  const double stretched = c.rope_scaling.factor * static_cast<double>(c.seq_length);
  if (c.seq_length > 0 && stretched >= 1 && stretched <= kLongest) c.seq_length = static_cast<int64_t>(stretched);
}

void read_llama3(ModelConfig& c, const Members& members, const Members& outer) {
  require_known(members, {"original_max_position_embeddings", "low_freq_factor", "high_freq_factor"});
  c.rope_scaling.original_seq_length = original_length(c, members, outer);
  c.rope_scaling.low_freq_factor = members.value("low_freq_factor").number();
  c.rope_scaling.high_freq_factor = members.value("high_freq_factor").number();
}

std::vector<double> factors_of(const HfValue& value) {
  if (!value.json().is_array()) value.refuse_damaged("a list of numbers");
  std::vector<double> factors;
  for (const HfJson& factor : value.json()) {
    if (!factor.is_number()) value.refuse_damaged("a list of numbers");
    factors.push_back(factor.get<double>());
  }
  return factors;
}

// The scaling factor is the ratio of the lengths. Versions differ in whether an explicit factor replaces it, so the two
// must agree; if there is an attention factor, no version uses it.
void read_long_rope(ModelConfig& c, const Members& members, const Members& outer) {
  require_known(members, {"original_max_position_embeddings", "short_factor", "long_factor", "attention_factor"});
  const HfValue factor = members.value("attention_factor");
  RopeScaling& s = c.rope_scaling;
  s.original_seq_length = original_length(c, members, outer);
  if (s.original_seq_length < 1) members.value("original_max_position_embeddings").refuse_damaged("1 or more");
  s.factor = static_cast<double>(c.seq_length) / static_cast<double>(s.original_seq_length);
  if (s.factor < 1) members.value("original_max_position_embeddings").refuse("at most max_position_embeddings");
  const HfValue scale = members.value("factor");
  if (!scale.is_null() && factor.is_null() && scale.number() != s.factor)
    scale.refuse(strprintf("%.10g: max_position_embeddings / original_max_position_embeddings", s.factor));
  s.short_factors = factors_of(members.value("short_factor"));
  s.long_factors = factors_of(members.value("long_factor"));
  if (factor.is_null()) return;
  s.attention_factor = factor.number();
  if (!(s.attention_factor > 0)) factor.refuse("a number above 0");
}

const std::map<std::string, RopeScalingKind>& kinds() {
  static const std::map<std::string, RopeScalingKind> kKinds = {{"linear", RopeScalingKind::kLinear},
                                                                {"dynamic", RopeScalingKind::kDynamic},
                                                                {"llama3", RopeScalingKind::kLlama3},
                                                                {"longrope", RopeScalingKind::kLongRope}};
  return kKinds;
}

void read_scaling(ModelConfig& c, RopeScalingKind kind, const Members& members, const Members& outer) {
  c.rope_scaling.kind = kind;
  if (kind == RopeScalingKind::kLongRope) return read_long_rope(c, members, outer);
  c.rope_scaling.factor = members.value("factor").number();
  if (kind == RopeScalingKind::kLinear) require_known(members, {});
  if (kind == RopeScalingKind::kDynamic) read_dynamic(c, members);
  if (kind == RopeScalingKind::kLlama3) read_llama3(c, members, outer);
}

void read_parameters(ModelConfig& c, const Members& members, const Members& outer) {
  read_share(c, members);
  c.rope_theta = members.number("rope_theta", c.rope_theta);
  const HfValue type = members.value(members.value("rope_type").is_null() ? "type" : "rope_type");
  const std::string named = type.is_null() ? "default" : type.text();
  const std::string kind = named == "su" ? "longrope" : named;  // in the first files of Phi-3
  c.yarn = {};                                                  // whatever the default of the family is
  if (kind == "default") return;
  if (kind == "yarn") return read_yarn(c, members, outer);
  const auto known = kinds().find(kind);
  if (known == kinds().end()) type.refuse("default, linear, dynamic, llama3, longrope or yarn");
  read_scaling(c, known->second, members, outer);
}

// Reads the object for layers with a window.
void read_local(ModelConfig& c, const HfValue& value, const std::string& where, const std::string& path) {
  if (value.is_null()) return;
  if (!value.json().is_object()) value.refuse_damaged("an object");
  const Members members(value.json(), where, path);
  const HfValue type = members.value("rope_type");
  if (!type.is_null() && type.text() != "default") type.refuse("default");
  c.local_rope_theta = members.number("rope_theta", c.local_rope_theta);
}

constexpr const char *kOldForm = "rope_scaling", *kNewForm = "rope_parameters";

// An empty object counts as absent.
bool is_given(const HfValue& value) {
  if (value.is_null()) return false;
  if (!value.json().is_object()) value.refuse_damaged("an object");
  return !value.json().empty();
}

// Refuses one object per kind of layer, which a class with only one kind would ignore.
void refuse_kinds_of_layers(const Members& members) {
  for (const char* kind : {"full_attention", "sliding_attention"}) {
    if (!members.value(kind).is_null()) members.value(kind).refuse("no such key: the members themselves");
  }
}

void read_old_form(ModelConfig& c, const Members& outer, const std::string& path) {
  const HfValue inner = outer.value(kOldForm);
  const Members members(inner.json(), std::string(kOldForm) + ".", path);
  refuse_kinds_of_layers(members);
  read_parameters(c, members, outer);
}

void read_new_form(ModelConfig& c, const Members& outer, const std::string& path) {
  const HfValue inner = outer.value(kNewForm);
  const std::string where = std::string(kNewForm) + ".";
  const Members members(inner.json(), where, path);
  if (!has_kinds_of_layers(c)) {
    refuse_kinds_of_layers(members);
    return read_parameters(c, members, outer);
  }
  for (const auto& [key, value] : members.object().items()) {
    if (key != "full_attention" && key != "sliding_attention" && !value.is_null())
      members.value(key).refuse("no such key: the class reads full_attention and sliding_attention alone");
  }
  const HfValue full = members.value("full_attention");
  if (is_given(full)) read_parameters(c, Members(full.json(), where + "full_attention.", path), outer);
  read_local(c, members.value("sliding_attention"), where + "sliding_attention.", path);
}

bool same_rope(const ModelConfig& a, const ModelConfig& b) {
  return a.rope_theta == b.rope_theta && a.rotary_percent == b.rotary_percent && a.yarn == b.yarn &&
         a.rope_scaling == b.rope_scaling && a.seq_length == b.seq_length;
}

HfJson yarn_object(const YarnConfig& y) {
  HfJson object = {{"type", "yarn"},
                   {"rope_type", "yarn"},
                   {"factor", y.scaling_factor},
                   {"original_max_position_embeddings", y.original_seq_length},
                   {"beta_fast", y.beta_fast},
                   {"beta_slow", y.beta_slow},
                   {"mscale", y.mscale},
                   {"mscale_all_dim", y.mscale_all_dim}};
  if (y.attention_factor > 0) object["attention_factor"] = y.attention_factor;
  if (!y.truncate) object["truncate"] = false;
  return object;
}

// For Phi-3's class, which requires exactly these three members.
HfJson long_rope_object(const RopeScaling& s) {
  HfJson object = {{"type", "longrope"}, {"short_factor", s.short_factors}, {"long_factor", s.long_factors}};
  if (s.attention_factor > 0) object["attention_factor"] = s.attention_factor;
  return object;
}

HfJson scaling_object(const RopeScaling& s) {
  if (s.kind == RopeScalingKind::kLongRope) return long_rope_object(s);
  HfJson object;
  for (const auto& [name, kind] : kinds()) {
    if (kind == s.kind) object = {{"type", name}, {"rope_type", name}, {"factor", s.factor}};
  }
  if (s.kind != RopeScalingKind::kLlama3) return object;
  object["original_max_position_embeddings"] = s.original_seq_length;
  object["low_freq_factor"] = s.low_freq_factor;
  object["high_freq_factor"] = s.high_freq_factor;
  return object;
}

// The form that transformers 5 uses for layers without and with a window; older versions ignore it.
HfJson two_kinds(const HfJson& file, const ModelConfig& c) {
  HfJson full = file.contains("rope_scaling") ? file["rope_scaling"] : HfJson{{"rope_type", "default"}};
  full["rope_theta"] = c.rope_theta;
  return {{"full_attention", full},
          {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", c.local_rope_theta}}}};
}

}  // namespace

void write_hf_rope(HfJson& file, const ModelConfig& c, const ModelConfig& absent) {
  if (c.position != PositionKind::kRope) return;
  file["rope_theta"] = c.rope_theta;
  if (c.is_partly_rotary() || absent.is_partly_rotary()) file["partial_rotary_factor"] = c.rotary_percent;
  if (c.yarn.enabled()) file["rope_scaling"] = yarn_object(c.yarn);
  if (c.rope_scaling.enabled()) file["rope_scaling"] = scaling_object(c.rope_scaling);
  if (c.has_local_rope()) file["rope_parameters"] = two_kinds(file, c);
  if (absent.yarn.enabled() && !file.contains("rope_scaling")) file["rope_scaling"] = {{"rope_type", "default"}};
}

void read_hf_rope(ModelConfig& c, const HfJson& file, const std::string& path) {
  if (c.position != PositionKind::kRope) return;
  const Members outer(file, "", path);
  read_share(c, outer);
  c.rope_theta = outer.number("rope_theta", c.rope_theta);
  ModelConfig older = c;
  const bool has_old = is_given(outer.value(kOldForm)), has_new = is_given(outer.value(kNewForm));
  if (has_new) read_new_form(c, outer, path);
  if (!has_old) return;
  read_old_form(older, outer, path);
  if (has_new && !same_rope(c, older))
    outer.value(kOldForm).refuse(std::string("as ") + kNewForm + " beside it: transformers takes one of the two");
  if (!has_new) c = older;
}

void check_hf_rope(const HfRefusal& r, const ModelConfig& c) {
  r.require(c.rope_layers.all(), "--no-rope-freq", layer_pattern_text(c.rope_layers, PatternOne::kLacks),
            "0: rotary positions in all layers");
  const YarnConfig& y = c.yarn;
  const bool is_long = c.rope_scaling.kind == RopeScalingKind::kLongRope;
  const double longest = c.rope_scaling.factor * static_cast<double>(c.rope_scaling.original_seq_length);
  r.require(!is_long || (longest < 0x1p52 && longest == std::floor(longest)),
            "--rope-scaling-factor x --rope-scaling-original-length", strprintf("%g", longest),
            "a whole number: it is max_position_embeddings");
  if (!y.enabled()) return;
  const double length = y.scaling_factor * static_cast<double>(y.original_seq_length);
  r.require(length < 0x1p52 && length == std::floor(length),
            "--rotary-scaling-factor x --original-max-position-embeddings", strprintf("%g", length),
            "a whole number: it is max_position_embeddings");
  const bool both = y.mscale != 0 && y.mscale_all_dim != 0, plain = y.mscale == 1 && y.mscale_all_dim == 0;
  r.require(both || plain || y.attention_factor > 0, "--mscale and --mscale-all-dim",
            strprintf("%g and %g", y.mscale, y.mscale_all_dim), "both above 0, or 1 and 0");
}

void check_hf_rope_of_kinds(const HfRefusal& r, const ModelConfig& c) {
  r.require(!c.yarn.enabled() || c.yarn.truncate, "--yarn-truncate", "off", "on");
}

}  // namespace ranklab
