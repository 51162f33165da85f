// Serializes calls and errors. A call is sent without its data: on the coordinator's side its tensor is a meta tensor,
// which carries dtype and shape, so the comparisons and messages of call_check.h are those of a thread world. Thread
// rule: pure, except CallSites.
#pragma once
#include <set>
#include <string>

#include "backends/cpu_sim/transport/frame.h"
#include "core/base/error.h"
#include "core/comm/call.h"

namespace ranklab::cpu_sim {

// File names of call sites, kept for as long as calls may name them.
class SourceFiles {
 public:
  const char* keep(const std::string& file) { return files_.insert(file).first->c_str(); }

 private:
  std::set<std::string> files_;
};

void pack_call(Packer& packer, const Call& call);
Call unpack_call(Unpacker& unpacker, SourceFiles& files);

void pack_error(Packer& packer, const Error& error);
Error unpack_error(Unpacker& unpacker);

}  // namespace ranklab::cpu_sim
