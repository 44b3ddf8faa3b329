#include "runtime/device/cuda/evaluation.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/data/examples.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

std::vector<float> DeviceEvaluation::logits(const Dataset& examples) {
  if (examples.size() == 0) return {};
  const auto row = static_cast<std::size_t>(p_.network.outputs);
  const bool in_file = examples.rows != nullptr;
  const std::size_t fit =
      std::max<std::size_t>(1, (in_file ? kFileBytes : kMaxBytes) / feature_bytes(examples));
  FetchedExamples fetched;
  std::vector<std::uint32_t> which;
  std::vector<float> all;
  all.reserve(examples.size() * row);
  for (std::size_t at = 0; at < examples.size(); at += fit) {
    const std::size_t n = std::min(fit, examples.size() - at);
    if (in_file) {
      which.resize(n);
      std::iota(which.begin(), which.end(), static_cast<std::uint32_t>(at));
      upload(fetched.fetch(examples, which));
    } else if (n == examples.size()) {
      upload(examples);
    } else {
      Dataset part = empty_like(examples);
      for (std::size_t i = 0; i < n; ++i) append_example(examples, at + i, part);
      upload(part);
    }
    Buffer<float> to(p_.gpu, n * row);
    if (p_.fused)
      p_.fused->forward(count_.get(), n, on_device_.data(), p_.state.parameters(), to.get());
    else
      p_.passes.logits(count_.get(), n, on_device_.data(), p_.state.parameters(), to.get());
    const std::vector<float> logits = to.download();
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

void DeviceEvaluation::upload(const Dataset& examples) {
  if (is_uploaded(examples)) return;
  on_device_ = {};
  uploaded_ = {};
  on_device_ = {p_.gpu, examples};
  const auto count = static_cast<std::uint32_t>(examples.size());
  count_ = {p_.gpu, 1};
  count_.upload({&count, 1});
  uploaded_ = examples;
  own_features(uploaded_);
}

bool DeviceEvaluation::is_uploaded(const Dataset& d) const {
  return uploaded_.size() == d.size() && uploaded_.scale == d.scale && uploaded_.shift == d.shift &&
         uploaded_.layout == d.layout &&
         std::ranges::equal(uploaded_.byte_values(), d.byte_values()) &&
         uploaded_.coded == d.coded && uploaded_.labels == d.labels &&
         uploaded_.tokens == d.tokens && uploaded_.lengths == d.lengths &&
         uploaded_.vectors == d.vectors &&
         uploaded_.float_values().size() == d.float_values().size() &&
         (d.float_values().empty() ||  // compares bits, because numbers may be NaN
          std::memcmp(uploaded_.float_values().data(), d.float_values().data(),
                      d.float_values().size_bytes()) == 0);
}

}  // namespace cudp::cuda::inline CUDP_SIMT
