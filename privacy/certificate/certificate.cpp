#include "privacy/certificate/certificate.hpp"

#include <cmath>

namespace cudp::privacy {

void Certificate::hold_out(const Holdout& part) {
  holdout = part;
  epsilon = std::fmax(promise.epsilon, part.epsilon);
  delta = std::fmax(promise.delta, part.delta);
}

std::string_view text_of(Certificate::Status status) {
  switch (status) {
    case Certificate::Status::not_finished:
      return "not finished";
    case Certificate::Status::refused:
      return "refused";
    default:
      return "finished";
  }
}

std::string_view text_of(Certificate::TestSet test_set) {
  switch (test_set) {
    case Certificate::TestSet::public_rows:
      return "public; read for test_accuracy only, not covered by the guarantee";
    case Certificate::TestSet::private_rows:
      return "not public: what was measured on it is not released, nor covered by the guarantee";
    default:
      return "none";
  }
}

}  // namespace cudp::privacy
