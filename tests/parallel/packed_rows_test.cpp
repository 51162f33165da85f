// Rows packed by a device's operators have the bytes of the host's pack_matrix(), and unpacked ones its numbers.
#include "core/parallel/quantized/packed_rows.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "core/precision/scaled_matrix.h"
#include "core/sim/aten.h"
#include "tests/cuda/host_rounding.h"
#include "tests/parallel/operand_cases.h"

namespace ranklab {
namespace {

const HostRounding kRowDevice;

struct PackedRowsCase {
  std::string name;
  TensorPrecision precision;
};

std::vector<PackedRowsCase> packed_rows_cases() {
  std::vector<PackedRowsCase> cases;
  for (const char* format : {"e4m3", "e5m2", "e2m1"}) {
    for (const ScaleRule scale : {ScaleRule::kPowerOfTwo, ScaleRule::kE8M0, ScaleRule::kE8M0Up}) {
      for (const int64_t block : {0, 16, 128}) {
        const TensorPrecision precision{.format = &find_number_format(format),
                                        .granularity = block > 0 ? Granularity::kTile : Granularity::kRow,
                                        .block = block,
                                        .scale = scale};
        cases.push_back(
            {std::string(format) + " " + std::string(name(scale)) + " " + std::to_string(block), precision});
      }
    }
  }
  return cases;
}

// With a row of zeros, one of the smallest numbers and one of the largest.
at::Tensor packed_rows_sample(int64_t columns) {
  at::Tensor x = operand_sample(7, columns, 3);
  x[1].zero_();
  x[2].mul_(1e-38F);
  x[3].mul_(1e37F / x[3].abs().max());
  x[4][0] = -0.0F;
  return x;
}

at::Tensor packed_by_host(const at::Tensor& x, const TensorPrecision& precision) {
  const PackedLayout layout = packed_layout(precision, Along::kColumns, x.size(0), x.size(1));
  at::Tensor out = at::empty({x.size(0), layout.row_bytes()}, at::kByte);
  pack_matrix({x.const_data_ptr<float>(), x.size(0), x.size(1), x.size(1)}, precision, Along::kColumns, nullptr,
              {reinterpret_cast<std::byte*>(out.mutable_data_ptr<uint8_t>()), static_cast<size_t>(out.numel())});
  return out;
}

at::Tensor unpacked_by_host(const at::Tensor& bytes, const TensorPrecision& precision, int64_t columns) {
  at::Tensor out = at::empty({bytes.size(0), columns}, at::kFloat);
  unpack_matrix(
      {reinterpret_cast<const std::byte*>(bytes.const_data_ptr<uint8_t>()), static_cast<size_t>(bytes.numel())},
      precision, Along::kColumns, bytes.size(0), columns, 0, out.mutable_data_ptr<float>());
  return out;
}

TEST(PackedRows, AreThoseOfTheHost) {
  for (const int64_t columns : {256, 130, 33}) {
    for (const PackedRowsCase& c : packed_rows_cases()) {
      SCOPED_TRACE(c.name + ", columns " + std::to_string(columns));
      for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
        const at::Tensor x = packed_rows_sample(columns).to(type);
        const at::Tensor want = packed_by_host(x.to(at::kFloat), c.precision);
        const at::Tensor got = packed_rows(x, c.precision, kRowDevice);
        ASSERT_TRUE(at::equal(got, want));
        const at::Tensor numbers = unpacked_rows(got, c.precision, columns);
        EXPECT_TRUE(at::equal(numbers.view(at::kInt), unpacked_by_host(want, c.precision, columns).view(at::kInt)));
      }
    }
  }
}

TEST(PackedRows, NumbersThatAreNotFiniteSpoilTheirGroupAlone) {
  for (const PackedRowsCase& c : packed_rows_cases()) {
    SCOPED_TRACE(c.name);
    at::Tensor x = packed_rows_sample(256);
    x[5][3] = std::numeric_limits<float>::quiet_NaN();
    x[6][200] = std::numeric_limits<float>::infinity();
    const at::Tensor got = unpacked_rows(packed_rows(x, c.precision, kRowDevice), c.precision, 256);
    const at::Tensor want = unpacked_by_host(packed_by_host(x, c.precision), c.precision, 256);
    EXPECT_TRUE(at::allclose(got, want, 0, 0, /*equal_nan=*/true));
    EXPECT_TRUE(got[5][3].isnan().item<bool>() && got[6][200].isnan().item<bool>());
  }
}

}  // namespace
}  // namespace ranklab
