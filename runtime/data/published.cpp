#include "runtime/data/published.hpp"

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/data/sha256.hpp"

namespace cudp {
namespace {

// scripts/fetch_data.sh downloads these files, except IPUMS-BR (available from DP-AGD's authors),
// the first 1,000 images of CIFAR-10's test_batch.bin, and two smaller tables made from the vectors
// of GloVe and MiniLM.
constexpr std::array<PublishedFile, 28> kFiles = {{
    {"mnist", "train-images-idx3-ubyte",
     "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
    {"mnist", "train-labels-idx1-ubyte",
     "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
    {"mnist", "t10k-images-idx3-ubyte",
     "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
    {"mnist", "t10k-labels-idx1-ubyte",
     "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"},
    {"fashion-mnist", "train-images-idx3-ubyte",
     "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
    {"fashion-mnist", "train-labels-idx1-ubyte",
     "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
    {"fashion-mnist", "t10k-images-idx3-ubyte",
     "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
    {"fashion-mnist", "t10k-labels-idx1-ubyte",
     "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"},
    {"cifar-10", "data_batch_1.bin",
     "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
    {"cifar-10", "data_batch_2.bin",
     "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
    {"cifar-10", "data_batch_3.bin",
     "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
    {"cifar-10", "data_batch_4.bin",
     "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
    {"cifar-10", "data_batch_5.bin",
     "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
    {"cifar-10", "test_batch.bin",
     "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"},
    {"cifar-10", "test_batch_first1000.bin",
     "8314c96d7cd65618193bab23acdd5d4c4af15bf6dd00a1781d55beedf3be1ef5"},
    {"adult", "adult.data", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"},
    {"adult", "adult.test", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"},
    {"bank", "BANK.dat", "fe536a257d242b1fb78dd0e753d2c50176ef12a5dd23dfb86402f62127a3b96e"},
    {"ipums-br", "IPUMS-BR.dat",
     "9bcc80cf279457d62e9025d31a05c3e494e9d6edbb2097ba935eb4926a39884a"},
    {"imdb", "imdb_train.tsv", "e10d504574832e0c2d6cee80dab4f7950ee566d08f595486ee74feb86c9c8df9"},
    {"imdb", "imdb_test.tsv", "1c70ee7ad0652f93e30fc23d325bdcab5b4db09bf0da59df1546a3e5dc3c86f9"},
    {"glove", "glove.6B.50d.txt",
     "d8f717f8dd4b545cb7f418ef9f3d0c3e6e68a6f48b97d32f8b7aae40cb31f96f"},
    {"glove", "public20k_glove50.safetensors",
     "c1995191e63c5b727cb4488f6abfc2f71d3f5e22bbc47161112dc4f729916fbf"},
    {"glove", "public20k_words.txt",
     "23e822ef956b5ef66e628dcd60bb4483ebf6d57f71bf67200141dec016f0c18a"},
    {"minilm", "model.safetensors",
     "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"},
    {"minilm", "vocab.txt", "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"},
    {"minilm", "wordpiece30522_minilm100.safetensors",
     "b8d7b97a3ea769351d0dfeaf804e05a3b06d11a90ee81a5d684fac07981f41d9"},
    {"minilm", "wordpiece30522_vocab.txt",
     "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"},
}};

std::string_view digest_of(const Claim& claim) {
  for (const PublishedFile& f : kFiles)
    if (f.set == claim.set && f.file == claim.file) return f.sha256;
  throw Error("no published file: " + claim.set + ", " + claim.file);
}

template <std::size_t size>
std::string hexadecimal(const std::array<unsigned char, size>& digest) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char b : digest) {
    text += kDigits[b >> 4];
    text += kDigits[b & 15];
  }
  return text;
}

/// Reader that passes on the bytes of another reader, and computes their SHA-256 digest.
class HashedReader final : public ByteReader {
 public:
  explicit HashedReader(std::unique_ptr<ByteReader> raw)
      : ByteReader(raw->name()), raw_(std::move(raw)) {}

  std::uint64_t reservable() const override { return raw_->reservable(); }

  /// Returns whether reading or decompressing the file has failed.
  bool is_broken() const { return broken_; }

  /// Reads the stream to its end and returns the SHA-256 digest of its whole content, hexadecimal.
  std::string sha256() {
    std::vector<std::uint8_t> rest(std::size_t{64} << 10);
    while (read(rest) == rest.size()) {
    }
    return hexadecimal(hash_.finish());
  }

 private:
  std::size_t fill(std::span<std::uint8_t> out) override {
    broken_ = true;
    const std::size_t n = raw_->read(out);
    broken_ = false;
    hash_.add(out.first(n));
    return n;
  }

  std::unique_ptr<ByteReader> raw_;
  Sha256 hash_;
  bool broken_ = false;
};

}  // namespace

std::span<const PublishedFile> published_files() { return kFiles; }

void check_claim(const std::filesystem::path& path, const Claim& claim, std::string_view sha256) {
  if (claim.set.empty()) return;
  const std::string_view expected = digest_of(claim);
  if (sha256 == expected) return;
  // The message reveals nothing about the content, which may be private.
  bad_input(path.string(), "",
            "the published " + claim.file + " of " + claim.set + " (unpacked: SHA-256 " +
                std::string(expected) + ")",
            "other content; " + claim.own);
}

void read_claimed(const std::filesystem::path& path, const Claim& claim,
                  const std::function<void(ByteReader&)>& read, Busy* progress,
                  Compression compression) {
  if (claim.set.empty()) return read(*open_bytes(path, progress, compression));
  HashedReader reader(open_bytes(path, progress));
  try {
    read(reader);
  } catch (const InputError&) {
    // If the file is not the published one, reading it often fails, with a message that quotes the
    // file's content. The digest is checked first, because its message quotes nothing.
    if (!reader.is_broken()) check_claim(path, claim, reader.sha256());
    throw;
  }
  check_claim(path, claim, reader.sha256());
}

std::string sha256_of(std::span<const std::uint8_t> bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hexadecimal(hash.finish());
}

}  // namespace cudp
