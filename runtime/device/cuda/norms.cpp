#include "runtime/device/cuda/norms.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "runtime/base/error.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

void DeviceNorms::reset() {
  const auto count = static_cast<std::uint32_t>(p_.train.size());
  count_.upload({&count, 1});
}

void DeviceNorms::measure() {
  ensure(p_.keeps_norms(), "norms are not kept");
  if (p_.train.size() == 0) return;
  measure_all();
  if (p_.settings.audit == nullptr) return;
  std::vector<float> norms = p_.norms.download();
  p_.canaries.set_norms(norms);
  p_.norms.upload(norms);
}

void DeviceNorms::measure_all() {
  if (p_.fused) {
    p_.fused->norms(count_.get(), p_.train.size(), p_.train.data(), p_.state.parameters(),
                    p_.norms.get());
    return;
  }
  const auto capacity = static_cast<std::size_t>(p_.passes.capacity());
  for (std::size_t first = 0; first < p_.train.size(); first += capacity) {
    const Batch batch{
        .count = count_.get(),
        .first = static_cast<std::int32_t>(first),
        .capacity = static_cast<std::int32_t>(std::min(capacity, p_.train.size() - first))};
    p_.passes.forward(batch, p_.train.data(), nullptr, p_.state.parameters());
    p_.passes.backward(Weighted::loss);
    p_.passes.norms(p_.norms.get());
  }
}

std::uint64_t DeviceNorms::total(double max_norm, double grid) {
  ensure(p_.keeps_norms(), "norms are not kept");
  if (p_.train.size() == 0) return 0;
  p_.gpu.total_norms({.norms = p_.norms.get(),
                      .n = static_cast<std::int64_t>(p_.norms.size()),
                      .max_norm = max_norm,
                      .grid = grid,
                      .total = total_.get()});
  return total_.download().front();
}

}  // namespace cudp::cuda::inline CUDP_SIMT
