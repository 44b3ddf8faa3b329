#include "runtime/train/backend.hpp"

#include "runtime/error.hpp"

namespace cudp {

Backend choose_backend(Device wish) {
  if (wish == Device::cuda) throw InputError("--device: expected a usable CUDA device, found none");
  return {"cpu", kCpuArithmetic, make_cpu_engine};
}

}  // namespace cudp
