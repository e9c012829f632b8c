// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* OpenSSL: assembler written by hand, with CFI that says where on the stack rsp was saved. */
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "walk_subject.h"

static unsigned char data[4096];

static void must(int ok)
{
	if (!ok)
		abort();
}

static void digest(const char *name)
{
	unsigned char out[EVP_MAX_MD_SIZE];
	const EVP_MD *md = EVP_get_digestbyname(name);
	unsigned int len;

	must(md && EVP_Digest(data, sizeof(data), out, &len, md, NULL));
}

static void cipher(const EVP_CIPHER *type)
{
	static unsigned char out[sizeof(data) + 64];
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int len;

	must(ctx && EVP_EncryptInit_ex(ctx, type, NULL, data, data + 64));
	must(EVP_EncryptUpdate(ctx, out, &len, data, sizeof(data)));
	must(EVP_EncryptFinal_ex(ctx, out + len, &len));
	EVP_CIPHER_CTX_free(ctx);
}

static void sign(EVP_PKEY *key)
{
	static unsigned char out[1024];
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	size_t len = sizeof(out);

	must(ctx && EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) == 1);
	must(EVP_DigestSign(ctx, out, &len, data, 100) == 1);
	EVP_MD_CTX_free(ctx);
}

int main(int argc, char **argv)
{
	EVP_PKEY *rsa = EVP_RSA_gen(1024), *ec = EVP_EC_gen("P-256");

	must(rsa && ec && argc == 2);
	/* Once before: what is set up at first use is not what is to be seen. */
	digest("SHA256");
	sign(ec);
	subject_begin();
	if (!strcmp(argv[1], "sign")) {
		sign(ec);
		sign(rsa);
	} else {
		digest("SHA1");
		digest("SHA256");
		digest("SHA512");
		digest("SHA3-256");
		digest("MD5");
		cipher(EVP_aes_256_cbc());
		cipher(EVP_aes_128_gcm());
		cipher(EVP_aes_128_ctr());
		cipher(EVP_chacha20_poly1305());
	}
	subject_end();
	return 0;
}
