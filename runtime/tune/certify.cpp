#include "runtime/tune/certify.hpp"

#include "privacy/certificate/certificate.hpp"

namespace cudp {

std::string tuned_certificate(const std::string& trained, const Winner& winner) {
  privacy::Certificate c = privacy::read_certificate(trained);
  c.epsilon = winner.plan.budget.whole.epsilon;
  c.delta = winner.plan.budget.whole.delta;
  return privacy::to_text(c);
}

}  // namespace cudp
