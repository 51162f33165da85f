#include "tests/cuda/stand_in/stream_rounding.h"

#include "tests/cuda/host_rounding.h"
#include "tests/cuda/stand_in/task_memory.h"

namespace ranklab::stand_in {
namespace {

template <typename T>
T* there(T* address) {
  return static_cast<T*>(on_host(address));
}

// The members are pointers and plain numbers of several widths, so each address is translated by name.
DeviceMatrix there(DeviceMatrix matrix) {
  matrix.x = there(matrix.x);
  return matrix;
}
DeviceNoise there(DeviceNoise noise) {
  noise.row_numbers = there(noise.row_numbers), noise.step_key = there(noise.step_key);
  return noise;
}
DeviceRounded there(DeviceRounded out) {
  out.values = there(out.values), out.codes = there(out.codes), out.turned = there(out.turned);
  return out;
}

class StreamRounding final : public DeviceRounding {
 public:
  int capability() const override { return loops_.capability(); }
  void group_amax(const DeviceMatrix& matrix, float* amax) const override {
    launch_here([this, m = there(matrix), amax = there(amax)] { loops_.group_amax(m, amax); });
  }
  void make_scales(const ScaleMaker& maker, const float* amax, int64_t groups, const float* tensor_amax,
                   float* scales) const override {
    launch_here([this, maker, amax = there(amax), groups, of_tensor = there(tensor_amax), scales = there(scales)] {
      loops_.make_scales(maker, amax, groups, of_tensor, scales);
    });
  }
  void round(const DeviceMatrix& matrix, const RoundingGrid& grid, const float* scales, const DeviceNoise& noise,
             const DeviceRounded& out) const override {
    launch_here([this, m = there(matrix), grid, scales = there(scales), noise = there(noise), out = there(out)] {
      loops_.round(m, grid, scales, noise, out);
    });
  }
  void round_at_once(const DeviceMatrix& matrix, const RoundingGrid& grid, const ScaleMaker& maker, float* scales,
                     float* values) const override {
    launch_here([this, m = there(matrix), grid, maker, scales = there(scales), values = there(values)] {
      loops_.round_at_once(m, grid, maker, scales, values);
    });
  }
  bool casts_at_once(const DeviceMatrix& matrix, const RoundingGrid& grid, const ScaleMaker& maker) const override {
    return loops_.casts_at_once(matrix, grid, maker);
  }
  void cast_at_once(const DeviceMatrix& matrix, const RoundingGrid& grid, const ScaleMaker& maker,
                    bool along_columns_first, float* scales, const DeviceRounded& out) const override {
    launch_here([this, m = there(matrix), grid, maker, along_columns_first, scales = there(scales), out = there(out)] {
      loops_.cast_at_once(m, grid, maker, along_columns_first, scales, out);
    });
  }
  void hash_rows(const DeviceMatrix& matrix, uint64_t* numbers) const override {
    launch_here([this, m = there(matrix), numbers = there(numbers)] { loops_.hash_rows(m, numbers); });
  }

 private:
  HostRounding loops_{kHopperCapability};
};

}  // namespace

const DeviceRounding& stream_rounding() {
  static const StreamRounding rounding;
  return rounding;
}

}  // namespace ranklab::stand_in
