"""client.py URL KEY : the README's path with a client that was generated from the document."""

import sys
import time

from better_compute_client import AuthenticatedClient
from better_compute_client.api.capacity import capacity_get, capacity_preview
from better_compute_client.api.join_tokens import join_token_create
from better_compute_client.api.keys import key_create
from better_compute_client.api.pools import pool_create, pool_list
from better_compute_client.api.reservations import (reservation_create, reservation_get,
                                                    reservation_list, reservation_release)
from better_compute_client.api.sites import site_create
from better_compute_client.api.tenants import tenant_create
from better_compute_client.api.whoami import whoami
from better_compute_client import models


def main():
    url, key = sys.argv[1:]
    client = AuthenticatedClient(base_url=url, token=key, raise_on_unexpected_status=True)
    me = whoami.sync(client=client)
    assert isinstance(me, models.Principal) and me.role == models.PrincipalRole.OPERATOR, me
    tenant = tenant_create.sync(client=client, body=models.TenantCreate(name="generated"))
    site = site_create.sync(client=client, body=models.SiteCreate(
        tenant_id=tenant.id, name="home", kind=models.SiteCreateKind.CUSTOM))
    pool = pool_create.sync(client=client, body=models.PoolCreate(
        tenant_id=tenant.id, site_id=site.id, name="h100", class_=models.PoolCreateClass.METAL_HOST,
        gpu_model="H100", policy=models.PoolPolicy(), idempotency_key="once"))
    assert isinstance(pool, models.Pool) and pool.state == models.PoolState.ACTIVE, pool
    assert pool.id in [item.id for item in pool_list.sync(client=client).items]
    token = join_token_create.sync(client=client, body=models.JoinTokenCreate(
        pool_id=pool.id, ttl="1h"))
    assert token.token.startswith("bcj1_jt_") and token.max_uses == 1, token

    # As who the pool belongs to, with a key that only books.
    made = key_create.sync(client=client, body=models.KeyCreate(
        tenant_id=tenant.id, role=models.KeyCreateRole.USER, name="ci"))
    user = AuthenticatedClient(base_url=url, token=made.key, raise_on_unexpected_status=True)
    asked = {"tenant_id": tenant.id, "pool_id": pool.id, "duration": "8h",
             "devices": [models.DeviceNeed(class_=models.DeviceNeedClass.GPU, count=2)]}
    preview = capacity_preview.sync(client=user, body=models.CapacityPreview(
        binding=models.CapacityPreviewBinding.KUBERNETES, **asked))
    assert preview.fits is False and preview.reasons[0].reason == "PoolEmpty", preview
    booked = reservation_create.sync(client=user, body=models.ReservationCreate(
        binding=models.ReservationCreateBinding.KUBERNETES, **asked))
    assert booked.state == models.ReservationState.PENDING, booked
    assert booked.created_at.timestamp() <= time.time() + 1
    listed = reservation_list.sync(client=user, pool_id=pool.id)
    assert [item.id for item in listed.items] == [booked.id], listed
    assert capacity_get.sync(client=user, pool_id=pool.id).items == []
    released = reservation_release.sync(booked.id, client=user)
    assert released.state == models.ReservationState.RELEASED, released
    again = reservation_get.sync(booked.id, client=user)
    assert again.to_dict() == released.to_dict()

    # A refusal is typed too.
    refused = pool_create.sync(client=user, body=models.PoolCreate(
        tenant_id=tenant.id, site_id=site.id, name="more", class_=models.PoolCreateClass.METAL_HOST,
        gpu_model="H100", policy=models.PoolPolicy()))
    assert isinstance(refused, models.Error), refused
    assert refused.error.code == models.ErrorDetailCode.FORBIDDEN and refused.error.hint, refused


main()
