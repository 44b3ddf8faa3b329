#!/usr/bin/env bash
# Downloads a public data set and checks its sha256.
#   scripts/fetch_data.sh mnist|fashion-mnist|cifar-10|adult|bank [DIR]
# The files go to DIR/NAME, DIR is "data" if not given; then: cudp train --dataset NAME --data-dir DIR
# A file that is there and right is kept. Needs curl or wget, sha256sum and tar.
set -euo pipefail

usage() {
  sed -n '2,5s/^# \{0,1\}//p' "$0"
}
fail() {
  echo "fetch_data.sh: $*" >&2
  exit 1
}

if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  usage
  exit 0
fi
if (($# < 1 || $# > 2)); then
  usage >&2
  exit 2
fi
name=$1
folder=${2:-data}/$name
partial=""
trap '[[ -z $partial ]] || rm -rf "$partial"' EXIT

digest_is() {
  [[ $(sha256sum <"$1" | cut -d' ' -f1) == "$2" ]]
}

download() {  # URL FILE
  if command -v curl >/dev/null; then
    curl --fail --location --silent --show-error --retry 2 --connect-timeout 20 -o "$2" "$1"
  elif command -v wget >/dev/null; then
    wget --quiet --tries=3 --timeout=20 -O "$2" "$1"
  else
    fail "expected curl or wget, found neither"
  fi
}

# fetch FILE SHA256 URL...: the first URL that answers with the right content. A file appears under
# its name only when it is whole and right.
fetch() {
  local file=$folder/$1 digest=$2 url
  shift 2
  if [[ -f $file ]] && digest_is "$file" "$digest"; then
    echo "$file: already there"
    return
  fi
  partial=$(mktemp "$folder/.fetch.XXXXXX")
  for url in "$@"; do
    echo "$url"
    if ! download "$url" "$partial"; then
      echo "fetch_data.sh: no answer from $url" >&2
    elif ! digest_is "$partial" "$digest"; then
      echo "fetch_data.sh: $url: expected sha256 $digest, found $(sha256sum <"$partial" | cut -d' ' -f1)" >&2
    else
      chmod 644 "$partial"
      mv "$partial" "$file"
      partial=""
      return
    fi
  done
  fail "could not download $(basename "$file"): no source gave the right file (is there a network?)"
}

fetch_idx() {  # SHA256 of the four files, then base URLs
  local digests=("$1" "$2" "$3" "$4") i base urls
  local files=(train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz
    t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz)
  shift 4
  for i in 0 1 2 3; do
    urls=()
    for base in "$@"; do urls+=("$base/${files[i]}"); done
    fetch "${files[i]}" "${digests[i]}" "${urls[@]}"
  done
}

fetch_cifar() {
  local archive=cifar-10-binary.tar.gz batches=(data_batch_{1..5}.bin test_batch.bin) b complete=true
  for b in "${batches[@]}"; do [[ -f $folder/$b ]] || complete=false; done
  if $complete; then
    echo "$folder: already there"
    return
  fi
  fetch "$archive" c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd \
    "https://www.cs.toronto.edu/~kriz/$archive"
  partial=$(mktemp -d "$folder/.unpack.XXXXXX")
  tar -xzf "$folder/$archive" -C "$partial" --strip-components=1
  for b in "${batches[@]}"; do mv "$partial/$b" "$folder/$b"; done
  rm -rf "$partial" "${folder:?}/$archive"
  partial=""
}

case $name in
  mnist | fashion-mnist | cifar-10 | adult | bank) mkdir -p "$folder" ;;
esac
case $name in
  mnist)
    fetch_idx 440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609 \
      3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c \
      8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6 \
      f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6 \
      https://ossci-datasets.s3.amazonaws.com/mnist \
      https://storage.googleapis.com/cvdf-datasets/mnist
    ;;
  fashion-mnist)
    fetch_idx 3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84 \
      a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845 \
      346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073 \
      67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5 \
      http://fashion-mnist.s3-website.eu-central-1.amazonaws.com \
      https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion
    ;;
  cifar-10) fetch_cifar ;;
  adult)
    base=https://archive.ics.uci.edu/ml/machine-learning-databases/adult
    fetch adult.data 5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d "$base/adult.data"
    fetch adult.test a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05 "$base/adult.test"
    ;;
  bank)
    # The file of the authors of DP-AGD: UCI's bank-full.csv has other columns and another encoding.
    fetch BANK.dat fe536a257d242b1fb78dd0e753d2c50176ef12a5dd23dfb86402f62127a3b96e \
      https://raw.githubusercontent.com/ppmlguy/DP-AGD/master/dataset/BANK.dat
    ;;
  ipums-br)
    echo "fetch_data.sh: ipums-br is not downloaded: IPUMS restricts redistribution. The authors of" \
      "DP-AGD keep IPUMS-BR.dat in their repository (ppmlguy/DP-AGD); put it into ${2:-data}/ipums" >&2
    exit 2
    ;;
  *)
    echo "fetch_data.sh: expected mnist, fashion-mnist, cifar-10, adult or bank, found '$name'" >&2
    exit 2
    ;;
esac
echo "$folder: ready"
