// Which software (core/sim/software.h) a published run's row is of, by what the row and its source say. Thread rule:
// immutable; outlives neither the row nor its source.
#pragma once
#include <string>

#include "core/plan/measured/row_reader.h"

namespace ranklab {

class RowSoftware {
 public:
  RowSoftware(const RowReader& config, const std::string& source) : c_(config), source_(source) {}

  std::string name() const;
  std::string unknown() const;  // why no software is known of the row's framework; "" if one is
  bool own() const;             // this project's
  bool of_megatron() const;
  bool of_zero_bubble() const;  // its authors train in a fork of Megatron-LM
  bool torchtitan() const;
  // Megatron-LM of 2021 and 2022 had neither sequence parallelism nor flash attention; it trained in fp16.
  bool newer() const;

 private:
  std::string framework() const;  // in small letters

  const RowReader& c_;
  const std::string& source_;
};

}  // namespace ranklab
